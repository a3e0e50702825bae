package grouping

import "github.com/weirlog/weir/grouping/trace"

// HashScope is how much of an error a hash covers. Scopes are
// stored and shown, so they are never renamed.
type HashScope string

// The scopes, the strictest first.
const (
	ScopeTrace   HashScope = "trace"   // all exceptions of the chain with all own frames, and the templates of their messages
	ScopeStack   HashScope = "stack"   // the root cause: its type, the template of its message, three fifths of the own frames
	ScopeSite    HashScope = "site"    // its type, the first words of its message, the innermost own frames and what they called
	ScopePlace   HashScope = "place"   // fewer words and frames; similar errors, not the same
	ScopeClass   HashScope = "class"   // as place, but of the second frame the class alone; similar errors, not the same
	ScopePoint   HashScope = "point"   // its type and the innermost own frame; similar errors, not the same
	ScopeMessage HashScope = "message" // without a usable stack trace: type and template of the message
	ScopeType    HashScope = "type"    // the type alone; similar errors, not the same
	ScopeBudget  HashScope = "budget"  // nothing of the error: the budget of new groups was used up
)

// Level is one way to compare errors. Errors that are equal at a level are
// so at all looser ones: the deciding hash follows from every stricter one.
type Level struct {
	Scope    HashScope
	Frames   int  // of the innermost own frames of the root cause, at most
	Words    int  // of its message, at most
	Template bool // the whole template of its message counts
	Decides  bool // errors that are the same here are one group
	Stored   bool // groups are found by it
}

const unlimited = 1 << 20

// Levels are those of errors with a usable stack trace, from strict to
// loose. Those looser than the deciding one only find similar groups.
var Levels = [...]Level{
	{Scope: ScopeTrace, Frames: unlimited, Words: trace.MaxWords, Template: true, Stored: true},
	{Scope: ScopeStack, Frames: 10, Words: trace.MaxWords, Template: true},
	{Scope: ScopeSite, Frames: 8, Words: 5, Decides: true, Stored: true},
	{Scope: ScopePlace, Frames: 2, Words: 1},
	{Scope: ScopeClass, Frames: 2, Words: 1},
	{Scope: ScopePoint, Frames: 1, Stored: true},
}

// similar reports whether errors that are
// equal at this level need not be the same.
func (l Level) similar() bool {
	return l.Scope == ScopePlace || l.Scope == ScopeClass || l.Scope == ScopePoint
}

// Properties of Levels.
const (
	deciding = 2 // the index of the level that decides
	stored   = 3 // how many are stored; of these
	joining  = 2 // so many join
)
