package grouping

import "strings"

// Language is the runtime whose way of printing stack traces was recognised.
type Language string

// The languages whose traces are understood. Other traces are
// compared line by line.
const (
	Unknown    Language = "unknown"
	JavaScript Language = "javascript"
	Python     Language = "python"
	Java       Language = "java"
	Go         Language = "go"
	Ruby       Language = "ruby"
	PHP        Language = "php"
	DotNet     Language = "dotnet"
	Rust       Language = "rust"
	Native     Language = "native" // C, C++, Swift and Objective-C
	Dart       Language = "dart"
	BEAM       Language = "beam" // Elixir and Erlang
	PowerShell Language = "powershell"
	Perl       Language = "perl"
	Lua        Language = "lua"
	Julia      Language = "julia"
	Haskell    Language = "haskell"
	R          Language = "r"
)

// syntax is how one runtime prints traces and names things. All
// functions see lines without line breaks.
type syntax struct {
	language Language
	// frame parses one line. A frame with a file and no function
	// belongs to the line before it.
	frame func(line string) (Frame, bool)
	// has holds characters of which each frame that does not
	// begin with "at " has one; empty: frames may have none.
	has charSet
	// mark recognizes lines that begin or end exceptions.
	mark func(line string) mark
	// inApp distinguishes the sender's own code from libraries.
	inApp func(f *Frame) bool
	// home is the part of a module's name that its maker chose; nil
	// where paths tell whose it is.
	home func(module string) string
	// own corrects inApp for all frames of an exception, the
	// innermost first; nil: inApp suffices.
	own func(frames []Frame)
	// identity appends what names the frame in every occurrence;
	// nothing for a frame that does not count.
	identity func(dst []byte, f *Frame) []byte
	// opens recognises frames that begin an exception and name
	// it; nil where none does.
	opens func(line string) mark
	// place reads in which file a syntax error is, or an error
	// without calls; nil where it is a frame, as others are.
	place func(line string) Frame
	// callless: errors without calls are recognised by their place.
	callless bool
	// engine holds error types of the runtime, whose messages
	// differ between runtimes.
	engine map[string]bool
	// at: "at " begins frames, at most behind blanks. Frames of
	// other runtimes never begin so.
	at bool
	// twoLines: the place of a call is on a line of its own.
	twoLines bool
	// placeFirst: the call is on the line below its place.
	placeFirst bool
	// callees: every build and version of the runtime prints the
	// library's function that was called.
	callees bool
	// crashLast: the innermost call is printed last.
	crashLast bool
}

// mark is what a line that is no frame means for the chain of exceptions.
type mark struct {
	kind    markKind
	typ     string
	message string
}

type markKind uint8

const (
	noMark       markKind = iota
	header                // names the exception whose frames follow
	messageBelow          // is followed by the message of the exception whose frames follow
	trailer               // names the exception whose frames came before
	cause                 // the cause of the exceptions so far begins
	wrapper               // an exception around those so far begins
	another               // an exception around those so far begins, if the last one has its name
	opening               // names an exception whose frames follow: the first one, else the cause of those so far
	suppressed            // frames up to the next cause belong to no exception of the chain
	otherStack            // frames up to the next stack belong to no exception
	stack                 // a stack begins; only the first one with frames is that of the error
	errorEnd              // nothing after this line belongs to the error, once it has frames
	threadDump            // these are the stacks of all threads, not that of an error
)

// syntaxes in the order in which they are tried; a tie goes to the earlier one.
var syntaxes = [...]syntax{
	{language: Java, frame: javaFrame, mark: javaMark, inApp: javaInApp, home: javaHome, identity: javaIdentity, callees: true, at: true},
	{language: JavaScript, frame: javascriptFrame, has: charsOf("@/"), mark: javascriptMark, inApp: javascriptInApp, identity: javascriptIdentity,
		engine: javascriptEngine, place: javascriptPlace, at: true},
	{language: Python, frame: pythonFrame, has: charsOf("\",[│(:<"), mark: pythonMark, inApp: pythonInApp, identity: pythonIdentity, crashLast: true},
	{language: Python, frame: faultFrame, has: charsOf("\""), mark: faultMark, inApp: pythonInApp, identity: pythonIdentity},
	{language: Go, frame: goFrame, mark: goMark, inApp: goInApp, identity: goIdentity, twoLines: true},
	{language: DotNet, frame: dotnetFrame, has: charsOf("("), mark: dotnetMark, inApp: dotnetInApp, home: dotnetHome, identity: dotnetIdentity, at: true},
	{language: Ruby, frame: rubyFrame, has: charsOf("`'"), mark: rubyMark, opens: rubyOpens, inApp: rubyInApp, identity: rubyIdentity},
	{language: Ruby, frame: rubyTerminalFrame, has: charsOf("`'"), mark: rubyMark, opens: rubyTerminalOpens, inApp: rubyInApp,
		identity: rubyIdentity, crashLast: true},
	{language: PHP, frame: phpFrame, has: charsOf("#("), mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, place: phpPlace},
	{language: PHP, frame: xdebugFrame, has: charsOf("("), mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, crashLast: true},
	{language: PHP, frame: collisionFrame, has: charsOf(":("), mark: collisionMark, inApp: collisionInApp,
		identity: collisionIdentity, placeFirst: true, at: true},
	{language: Rust, frame: rustFrame, mark: rustMark, inApp: rustInApp, identity: rustIdentity, place: rustPlace, callless: true, twoLines: true, at: true},
	{language: Dart, frame: dartFrame, mark: dartMark, inApp: dartInApp, identity: dartIdentity},
	{language: BEAM, frame: beamFrame, has: charsOf("{(/"), mark: beamMark, inApp: beamInApp, identity: beamIdentity},
	{language: PowerShell, frame: powershellFrame, mark: powershellMark, inApp: powershellInApp, identity: powershellIdentity, at: true},
	{language: Perl, frame: perlFrame, mark: perlMark, inApp: perlInApp, identity: perlIdentity},
	{language: Lua, frame: luaFrame, mark: luaMark, inApp: luaInApp, identity: luaIdentity},
	{language: Julia, frame: juliaFrame, has: charsOf("[@"), mark: juliaMark, inApp: juliaInApp, identity: juliaIdentity, twoLines: true},
	{language: Haskell, frame: haskellFrame, has: charsOf(","), mark: haskellMark, inApp: haskellInApp, identity: haskellIdentity},
	{language: R, frame: rFrame, has: charsOf("("), mark: rMark, inApp: rInApp, identity: rIdentity},
	{language: Native, frame: nativeFrame, mark: nativeMark, inApp: nativeInApp, identity: nativeIdentity, at: true},
	{language: Native, frame: backwardFrame, has: charsOf("\""), mark: nativeMark, inApp: nativeInApp, identity: nativeIdentity, crashLast: true},
}

var unknownSyntax = syntax{language: Unknown, frame: unknownFrame, mark: unknownMark, opens: unknownOpens, inApp: unknownInApp, own: unknownOwn,
	identity: unknownIdentity}

// syntaxOf returns the syntax of a language.
func syntaxOf(language Language) *syntax {
	for i := range syntaxes {
		if syntaxes[i].language == language {
			return &syntaxes[i]
		}
	}
	return &unknownSyntax
}

// detectLead is by how many frames one language must lead.
const detectLead = 2

// detect returns the syntax that understands the first frames of the trace.
func detect(lines []string) *syntax {
	var score [len(syntaxes)]int
	for _, line := range lines {
		at, chars := strings.HasPrefix(line[leadingSpace(line):], "at "), charSet{}
		if !at {
			chars = charsOf(line)
		}
		for i := range syntaxes {
			if syntaxes[i].understands(line, at, chars) {
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
	return detectPlace(lines)
}

// understands reports whether a line with these characters, which may begin
// with "at ", is a frame.
func (s *syntax) understands(line string, at bool, chars charSet) bool {
	if at && !s.at || !at && s.has != (charSet{}) && !s.has.intersects(chars) {
		return false
	}
	_, ok := s.frame(line)
	return ok
}

// detectPlace returns the syntax in which an error without calls was reported.
func detectPlace(lines []string) *syntax {
	for _, line := range lines[:min(len(lines), prefixLines)] {
		for i := range syntaxes {
			if s := &syntaxes[i]; s.callless && s.place(line).File != "" {
				return s
			}
		}
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
