package grouping

import "github.com/weirlog/weir/grouping/trace"

// Places are where the calls of an error are that source maps may know.
func (g *Grouper) Places(e Error) []trace.Place {
	g.apply(nil, nil)
	g.trace.Read(e.Type, e.Message, e.StackTrace, e.Learned.Libraries, nil)
	g.trace.Keep()
	return g.trace.Places()
}

// PlacesOf are those of an error that was read before.
func (g *Grouper) PlacesOf(language trace.Language, exceptions []trace.Exception) []trace.Place {
	g.apply(nil, nil)
	g.trace.Load(language, exceptions, nil)
	return g.trace.Places()
}

// Rewrite returns the hashes of an error that was read before, with its
// calls where they were written, and as the rules say.
func (g *Grouper) Rewrite(language trace.Language, exceptions []trace.Exception, mapping trace.Mapping, learned Learned, context *EntryContext) Fingerprint {
	g.apply(learned.Rules, context)
	g.trace.Load(language, exceptions, mapping)
	if len(learned.Libraries) > 0 {
		g.trace.Relearn(learned.Libraries)
	}
	return g.fingerprint(learned)
}
