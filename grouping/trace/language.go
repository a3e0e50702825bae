package trace

import "strings"

// Language is the runtime whose format of stack traces was recognized.
type Language string

// The parsed languages. Other traces are compared line by line.
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

// syntax is how one runtime prints traces and names
// things. Its functions get lines without line breaks.
type syntax struct {
	language Language
	// frame parses one line. A frame with a file and no function
	// belongs to the line before it.
	frame func(line string) (Frame, bool)
	// has holds characters. Each frame that does not begin
	// with "at " has one of them; empty: frames may have none.
	has charSet
	// needs are characters that each frame has.
	needs charSet
	// clean prepares a line for intros and mark. nil: it is trimmed.
	clean func(line string) string
	// intros are how lines begin that begin or end exceptions.
	intros []intro
	// mark recognizes other such lines.
	mark func(line string) mark
	// inApp distinguishes the sender's own code from libraries.
	inApp func(f *Frame) bool
	// home is the part of a module's name that its vendor
	// chose; nil where paths distinguish own code.
	home func(module string) string
	// own corrects inApp for all frames of an exception,
	// the innermost first; nil where inApp suffices.
	own func(frames []Frame)
	// identity appends what names the frame in every
	// occurrence; nothing where the frame does not count.
	identity func(dst []byte, f *Frame) []byte
	// opens reads frames that begin an exception
	// and name it; nil where none does.
	opens func(line string) mark
	// named corrects type and message of an exception; nil where nothing is to be.
	named func(s *Span)
	// place reads the file of a syntax error, or of an error
	// without calls; nil where it is printed as a frame.
	place func(line string) Frame
	// callless: errors without calls are recognized by their place.
	callless bool
	// at: "at " begins frames, after blanks at most.
	// Frames of other runtimes never begin so.
	at bool
	// twoLines: a call's place has its own line.
	twoLines bool
	// placeFirst: the call is below its place.
	placeFirst bool
	// crashLast: the innermost call is printed last.
	crashLast bool
}

// mark is how a line that is no frame changes the chain of exceptions.
type mark struct {
	kind    markKind
	typ     string
	message string
}

type markKind uint8

const (
	noMark       markKind = iota
	header                // names the exception whose frames follow
	messageBelow          // the message of the exception whose frames follow is on the next line
	headerBelow           // the exception whose frames follow is named on the next line
	causeBelow            // the cause of the exceptions so far begins, and is named on the next line
	trailer               // names the exception whose frames came before
	cause                 // the cause of the exceptions so far begins
	wrapper               // an exception around those so far begins
	another               // like wrapper, if the last exception has this name
	opening               // names an exception whose frames follow: the first, else the cause of those so far
	suppressed            // frames up to the next cause belong to no exception of the chain
	otherStack            // frames up to the next stack belong to no exception
	stack                 // a stack begins; only the first one with frames is the error's
	errorEnd              // nothing below belongs to the error, once it has frames
	threadDump            // stacks of all threads, not of an error
)

// intro is the beginning of a line, and what it means.
type intro struct {
	begin string
	kind  markKind
	names named
}

// named is what follows an intro.
type named uint8

const (
	namesNothing named = iota
	namesMessage
	namesBoth // "Type: message"
)

// markOf reads a line that is no frame.
func (s *syntax) markOf(line string) mark {
	if s.clean == nil {
		line = strings.TrimSpace(line)
	} else {
		line = s.clean(line)
	}
	for i := range s.intros {
		if rest, ok := strings.CutPrefix(line, s.intros[i].begin); ok {
			return s.intros[i].markOf(rest)
		}
	}
	return s.mark(line)
}

func (i *intro) markOf(rest string) mark {
	switch i.names {
	case namesMessage:
		return mark{kind: i.kind, message: rest}
	case namesBoth:
		return markOf(i.kind, rest)
	}
	return mark{kind: i.kind}
}

func asIs(line string) string { return line }

// syntaxes, in the order in which they are
// tried; a tie goes to the earlier one.
var syntaxes = [...]syntax{
	{language: Java, frame: javaFrame, needs: charsOf("(."), clean: javaLine, intros: javaIntros,
		mark: javaMark, inApp: javaInApp, home: javaHome, identity: javaIdentity, at: true},
	{language: JavaScript, frame: javascriptFrame, has: charsOf("@/"), intros: javascriptIntros,
		mark: javascriptMark, inApp: javascriptInApp, identity: javascriptIdentity,
		place: javascriptPlace, at: true},
	{language: Python, frame: pythonFrame, has: charsOf("\",[│(:<"), clean: asIs,
		mark: pythonMark, inApp: pythonInApp, identity: pythonIdentity, crashLast: true},
	{language: Python, frame: faultFrame, needs: charsOf("F\""), clean: asIs, intros: faultIntros,
		mark: faultMark, inApp: pythonInApp, identity: pythonIdentity},
	{language: Go, frame: goFrame, clean: asIs, intros: goIntros, mark: goMark, inApp: goInApp, own: goOwn, identity: goIdentity, twoLines: true},
	{language: DotNet, frame: dotnetFrame, has: charsOf("("), clean: asIs,
		mark: dotnetMark, inApp: dotnetInApp, home: dotnetHome, identity: dotnetIdentity, at: true},
	{language: Ruby, frame: rubyFrame, has: charsOf("`'"), intros: rubyIntros,
		mark: rubyMark, opens: rubyOpens, inApp: rubyInApp, own: rubyOwn, identity: rubyIdentity},
	{language: Ruby, frame: rubyTerminalFrame, has: charsOf("`'"), intros: rubyIntros,
		mark: rubyMark, opens: rubyTerminalOpens, inApp: rubyInApp, own: rubyOwn,
		identity: rubyIdentity, crashLast: true},
	{language: PHP, frame: phpFrame, has: charsOf("#("), mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, place: phpPlace},
	{language: PHP, frame: xdebugFrame, has: charsOf("("), mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, crashLast: true},
	{language: PHP, frame: collisionFrame, has: charsOf(":("), mark: collisionMark, inApp: collisionInApp,
		identity: collisionIdentity, placeFirst: true, at: true},
	{language: Rust, frame: rustFrame, needs: charsOf(":"), clean: asIs, intros: rustIntros,
		mark: rustMark, inApp: rustInApp, identity: rustIdentity, place: rustPlace, callless: true, twoLines: true, at: true},
	{language: Dart, frame: dartFrame, needs: charsOf(":"), intros: dartIntros,
		mark: dartMark, named: dartSpan, inApp: dartInApp, identity: dartIdentity},
	{language: BEAM, frame: beamFrame, has: charsOf("{(/"), mark: beamMark, inApp: beamInApp, identity: beamIdentity},
	{language: PowerShell, frame: powershellFrame, needs: charsOf(":"),
		mark: powershellMark, inApp: powershellInApp, identity: powershellIdentity, at: true},
	{language: Perl, frame: perlFrame, needs: charsOf("cdt"), mark: perlMark, inApp: perlInApp, identity: perlIdentity},
	{language: Lua, frame: luaFrame, needs: charsOf(":"), clean: asIs, mark: luaMark, inApp: luaInApp, identity: luaIdentity},
	{language: Julia, frame: juliaFrame, has: charsOf("[@"), intros: juliaIntros,
		mark: noMarks, inApp: juliaInApp, identity: juliaIdentity, twoLines: true},
	{language: Haskell, frame: haskellFrame, has: charsOf(","), clean: asIs, mark: haskellMark, inApp: haskellInApp, identity: haskellIdentity},
	{language: R, frame: rFrame, needs: charsOf(":("), clean: asIs, mark: rMark, inApp: rInApp, identity: rIdentity},
	{language: Native, frame: nativeFrame, has: charsOf("#x!`@"), clean: nativeLine, intros: nativeIntros,
		mark: nativeMark, inApp: nativeInApp, own: nativeOwn, identity: nativeIdentity, at: true},
	{language: Native, frame: backwardFrame, needs: charsOf("#\""), clean: nativeLine, intros: nativeIntros,
		mark: nativeMark, inApp: nativeInApp, own: nativeOwn, identity: nativeIdentity, crashLast: true},
}

var unknownSyntax = syntax{language: Unknown, frame: unknownFrame, mark: noMarks, opens: unknownOpens, inApp: unknownInApp, own: unknownOwn,
	identity: unknownIdentity}

// placedSyntax reads calls of any other language.
var (
	placedSyntax     = syntax{language: Unknown, frame: placedFrame, mark: placedMark, inApp: unknownInApp, identity: unknownIdentity}
	placedLastSyntax = syntax{language: Unknown, frame: placedFrame, mark: placedLastMark, inApp: unknownInApp, identity: unknownIdentity, crashLast: true}
)

// syntaxOf returns the syntax of a language.
func syntaxOf(language Language) *syntax {
	for i := range syntaxes {
		if syntaxes[i].language == language {
			return &syntaxes[i]
		}
	}
	return &unknownSyntax
}

// detectLead is by how many frames the detected language must lead.
const detectLead = 2

// detect returns the syntax that parses most of the first frames.
func detect(lines []string) *syntax {
	var score [len(syntaxes)]int
	for _, line := range lines {
		at, chars := strings.HasPrefix(line[leadingSpace(line):], "at "), charsOf(line)
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

// understands reports whether a line with these
// characters is a frame. at: it may begin with "at ".
func (s *syntax) understands(line string, at bool, chars charSet) bool {
	if at && !s.at || !at && s.has != (charSet{}) && !s.has.intersects(chars) || !s.needs.within(chars) {
		return false
	}
	_, ok := s.frame(line)
	return ok
}

// detectPlace returns the syntax of an error without calls.
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

// leader returns the index of the highest score, and its lead.
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
