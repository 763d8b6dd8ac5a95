// Long work in slices of a few milliseconds, so that pointer, scrolling and drawing never wait for it.

const SLICE = 7;

// Runs a generator to its end; `onSlice` is called after each slice. `stop()` ends it early.
export function inSlices(generator, onSlice = () => {}) {
  const work = { stopped: false, stop: () => (work.stopped = true) };
  work.done = new Promise((resolve, reject) => {
    const go = () => {
      if (work.stopped) return resolve(false);
      const until = performance.now() + SLICE;
      try {
        do {
          if (generator.next().done) {
            onSlice(true);
            return resolve(true);
          }
        } while (performance.now() < until);
        onSlice(false);
      } catch (error) {
        return reject(error);
      }
      setTimeout(go, 0);
      return undefined;
    };
    go();
  });
  return work;
}
