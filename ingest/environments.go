package ingest

// An EnvironmentSet is the environments of a block's entries. Each is
// one of 64 bits, so it may seem to hold others too. The empty set is
// of an old block, which may hold any.
type EnvironmentSet uint64

// With returns the set with one more.
func (s EnvironmentSet) With(environment string) EnvironmentSet {
	return s | 1<<(hashWord([]byte(environment))%64)
}

// MayHold reports whether an entry of the environment may be there;
// empty: of any.
func (s EnvironmentSet) MayHold(environment string) bool {
	return environment == "" || s == 0 || s&EnvironmentSet(0).With(environment) != 0
}
