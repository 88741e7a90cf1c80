// Follows wasm_exec.js of the Go toolchain. The page sends the compiled program
// first; from then on the program listens itself.
onmessage = async ({ data }) => {
  const go = new Go();
  await go.run(await WebAssembly.instantiate(data, go.importObject));
  postMessage({ ended: true });
};
