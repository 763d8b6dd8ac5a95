"""Other people's models: attention that Regard did not write, heard where it is computed.

| file | what it hears |
| --- | --- |
| `scaled_dot` | `scaled_dot_product_attention`, whoever calls it (timm, diffusers, a function of your own) |
| `torch_modules` | `nn.MultiheadAttention` and `nn.Transformer*`, on torch's fast path too |
| `plain_softmax` | softmax, then a product with the values: attention written out by hand |
| `transformers_models` | the attention functions of `transformers`: sdpa, eager, flex |

Each makes an `Attention` of a call (`calls`): how it runs, what it relates, what it returns with another relation.
`interception` meets these calls, runs them, and reads the call's own arguments after that, so a model computes what it
would compute unheard. `ear` collects what is heard, `handles` gives foreign layers the taps that edits are addressed
to, `layers` says which layer is running, `expected` which ones should have been heard, `masks` turns others' masks into
our `Allow`, `windows` puts windows back on their grid, `steps` joins the steps of a decoder.
"""

from regard.recording.foreign.ear import Ear, listening_to_foreign
from regard.recording.foreign.handles import reaching_foreign, taps_by_address

__all__ = ["Ear", "listening_to_foreign", "reaching_foreign", "taps_by_address"]
