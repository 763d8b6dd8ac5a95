"""Pictures with a class each: generated shapes, public data sets, your own folders; decoded, augmented and batched."""
