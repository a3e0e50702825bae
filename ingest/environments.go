package ingest

// An EnvironmentSet is which environments a block's entries can be of: each is
// one of 64 bits, so it may seem to hold others as well. The empty set is of a
// block from before there were sets, which may hold any.
type EnvironmentSet uint64

// With is the set and one more.
func (s EnvironmentSet) With(environment string) EnvironmentSet {
	return s | 1<<(hashWord([]byte(environment))%64)
}

// MayHold reports whether an entry of the environment can be there; empty: of any.
func (s EnvironmentSet) MayHold(environment string) bool {
	return environment == "" || s == 0 || s&EnvironmentSet(0).With(environment) != 0
}
