package pickle

// Loadable is loadable, for tests.
func Loadable(s string) string { return loadable(s) }
