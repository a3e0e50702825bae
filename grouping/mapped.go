package grouping

import "github.com/weirlog/weir/grouping/trace"

// Places are where the calls of an error are that source maps may know.
func (g *Grouper) Places(e Error) []trace.Place {
	g.trace.Read(e.Type, e.Message, e.StackTrace, e.Learned.Libraries, nil)
	return g.trace.Places()
}

// PlacesOf are those of an error that was read before.
func (g *Grouper) PlacesOf(language trace.Language, exceptions []trace.Exception) []trace.Place {
	g.trace.Load(language, exceptions, nil)
	return g.trace.Places()
}

// Rewrite returns the hashes of an error that was read before, with its
// calls where they were written.
func (g *Grouper) Rewrite(language trace.Language, exceptions []trace.Exception, mapping trace.Mapping, learned Learned) Fingerprint {
	g.trace.Load(language, exceptions, mapping)
	return g.fingerprint(learned)
}
