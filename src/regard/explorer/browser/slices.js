// Long work in slices of a few milliseconds, so that pointer, scrolling and drawing never wait for it.

const SLICE = 7;
const PATIENCE = 60;

let urgent = 0;

// Runs a generator to its end; `onSlice` is called after each slice. `stop()` ends it early. What is done in the
// background waits while there is anything more urgent.
export function inSlices(generator, onSlice = () => {}, background = false) {
  const work = { stopped: false, stop: () => (work.stopped = true) };
  work.done = new Promise((resolve, reject) => {
    const end = (finish) => {
      if (!background) urgent--;
      finish();
    };
    if (!background) urgent++;
    const go = () => {
      if (work.stopped) return end(() => resolve(false));
      if (background && urgent) return void setTimeout(go, PATIENCE);
      const until = performance.now() + SLICE;
      try {
        do {
          if (generator.next().done) {
            onSlice(true);
            return end(() => resolve(true));
          }
        } while (performance.now() < until);
        onSlice(false);
      } catch (error) {
        return end(() => reject(error));
      }
      setTimeout(go, 0);
      return undefined;
    };
    go();
  });
  return work;
}
