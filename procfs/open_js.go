package procfs

// nonblock is not known in a browser, which has no processes either.
const nonblock = 0
