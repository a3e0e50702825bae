package v2

import "github.com/weirlog/weir/grouping"

// syntax is how one runtime prints traces and names things. All
// functions see lines without line breaks.
type syntax struct {
	language grouping.Language
	// frame parses one line. A frame with a file and no function
	// belongs to the line before it.
	frame func(line string) (grouping.Frame, bool)
	// mark recognises lines that are no frames but say where
	// exceptions begin and end.
	mark func(line string) mark
	// inApp tells the sender's own code from that of libraries.
	inApp func(f *grouping.Frame) bool
	// identity appends what names the frame in every occurrence;
	// nothing for a frame that does not count.
	identity func(dst []byte, f *grouping.Frame) []byte
	// crashLast: the innermost call is printed last.
	crashLast bool
	// causeFirst: the cause is printed before the exception that wraps it.
	causeFirst bool
}

// mark is what a line that is no frame means for the chain of exceptions.
type mark struct {
	kind    markKind
	typ     string
	message string
}

type markKind uint8

const (
	noMark     markKind = iota
	header              // names the exception whose frames follow
	cause               // the next exception of the chain begins and is named
	next                // the next exception of the chain begins; its name follows its frames
	suppressed          // frames up to the next cause belong to no exception of the chain
	trailer             // names the exception whose frames came before
	enough              // nothing after this line belongs to the error, once it has frames
	dump                // these are the stacks of all threads, not that of an error
)

// syntaxes in the order in which they are tried; a tie goes to the earlier one.
var syntaxes = [...]syntax{
	{language: grouping.Java, frame: javaFrame, mark: javaMark, inApp: javaInApp, identity: javaIdentity},
	{language: grouping.JavaScript, frame: javascriptFrame, mark: javascriptMark, inApp: javascriptInApp, identity: javascriptIdentity},
	{language: grouping.Python, frame: pythonFrame, mark: pythonMark, inApp: pythonInApp, identity: pythonIdentity, crashLast: true, causeFirst: true},
	{language: grouping.Go, frame: goFrame, mark: goMark, inApp: goInApp, identity: goIdentity},
	{language: grouping.DotNet, frame: dotnetFrame, mark: dotnetMark, inApp: dotnetInApp, identity: dotnetIdentity, causeFirst: true},
	{language: grouping.Ruby, frame: rubyFrame, mark: rubyMark, inApp: rubyInApp, identity: rubyIdentity},
	{language: grouping.PHP, frame: phpFrame, mark: phpMark, inApp: phpInApp, identity: phpIdentity, causeFirst: true},
	{language: grouping.Rust, frame: rustFrame, mark: rustMark, inApp: rustInApp, identity: rustIdentity},
}

var unknownSyntax = syntax{language: grouping.Unknown, frame: unknownFrame, mark: unknownMark, inApp: unknownInApp, identity: unknownIdentity}

const (
	detectLines = 64 // lines looked at before a trace counts as unknown
	detectLead  = 2  // frames by which one language must lead
)

// detect returns the syntax that understands the first frames of the trace.
func detect(lines []string) *syntax {
	var score [len(syntaxes)]int
	for _, line := range lines[:min(len(lines), detectLines)] {
		for i := range syntaxes {
			if _, ok := syntaxes[i].frame(line); ok {
				score[i]++
			}
		}
		if best, lead := leader(score[:]); lead >= detectLead {
			return &syntaxes[best]
		}
	}
	if best, _ := leader(score[:]); score[best] > 0 {
		return &syntaxes[best]
	}
	return &unknownSyntax
}

// leader returns the index of the highest score and how far it
// is ahead of the next.
func leader(score []int) (best, lead int) {
	second := 0
	for i := 1; i < len(score); i++ {
		switch {
		case score[i] > score[best]:
			second, best = score[best], i
		case score[i] > second:
			second = score[i]
		}
	}
	return best, score[best] - second
}
