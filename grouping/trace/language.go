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
	// signs tell which lines may be calls; at which of those
	// that begin with "at ", after blanks at most.
	signs []signs
	at    signs
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

// syntaxes, in the order in which they are tried;
// a tie goes to the earlier one, and java is the first.
var syntaxes = [...]syntax{
	{language: Java, frame: javaFrame, signs: []signs{needing("(.)").to(")"), needing("(.)at ").from("[>|A")}, at: needing(`(.)`), clean: javaLine, intros: javaIntros,
		mark: javaMark, inApp: javaInApp, home: javaHome, identity: javaIdentity},
	{language: JavaScript, frame: javascriptFrame, signs: []signs{needing("@:1", "/:1").to("1"), needing("@[native code]", ":wasm-function[@", ":wasm-function[/")}, at: needing(""), intros: javascriptIntros,
		mark: javascriptMark, inApp: javascriptInApp, identity: javascriptIdentity,
		place: javascriptPlace},
	{language: Python, frame: pythonFrame, signs: []signs{needing(`File "", line 1`, ".py in (", ".py:1: in ", "<ipython-input-> in ", "Cell In[", "File :1 in ", "│ :1 in ")}, clean: asIs,
		mark: pythonMark, inApp: pythonInApp, identity: pythonIdentity, crashLast: true},
	{language: Python, frame: faultFrame, signs: []signs{needing(`File "", line 1 in `)}, clean: asIs, intros: faultIntros,
		mark: faultMark, inApp: pythonInApp, identity: pythonIdentity},
	{language: Go, frame: goFrame, signs: goSigns, clean: asIs, intros: goIntros, mark: goMark, inApp: goInApp, own: goOwn, identity: goIdentity, twoLines: true},
	{language: DotNet, frame: dotnetFrame, signs: []signs{needing("()").from("abcdefghijklmnopqrstuvwxyz場"), needing("(at :1)").to(")1"), needing("(:line 1)")}, at: needing("()"), clean: asIs,
		mark: dotnetMark, inApp: dotnetInApp, home: dotnetHome, identity: dotnetIdentity},
	{language: Ruby, frame: rubyFrame, signs: []signs{needing(":1:in '")}, intros: rubyIntros,
		mark: rubyMark, opens: rubyOpens, inApp: rubyInApp, own: rubyOwn, identity: rubyIdentity},
	{language: Ruby, frame: rubyTerminalFrame, signs: []signs{needing(":1:in '")}, intros: rubyIntros,
		mark: rubyMark, opens: rubyTerminalOpens, inApp: rubyInApp, own: rubyOwn,
		identity: rubyIdentity, crashLast: true},
	{language: PHP, frame: phpFrame, signs: []signs{needing("#1 ").from("#"), needing("() at :1.php").to("1")}, mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, place: phpPlace},
	{language: PHP, frame: xdebugFrame, signs: []signs{needing("1. () :.php").to("1")}, mark: phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, crashLast: true},
	{language: PHP, frame: collisionFrame, signs: []signs{needing(":1.php ", ":1artisan ").to("1"), needing("(::)").to(")")}, at: needing(":1.php", ":1artisan").to("1"), mark: collisionMark, inApp: collisionInApp,
		identity: collisionIdentity, placeFirst: true},
	{language: Rust, frame: rustFrame, signs: []signs{needing("1: ").from("1")}, at: needing(".rs:1"), clean: asIs, intros: rustIntros,
		mark: rustMark, inApp: rustInApp, identity: rustIdentity, place: rustPlace, callless: true, twoLines: true},
	{language: Dart, frame: dartFrame, signs: []signs{needing("#1 (:)").from("#").to(")"), needing(".dart 1:1")}, intros: dartIntros,
		mark: dartMark, named: dartSpan, inApp: dartInApp, identity: dartIdentity},
	{language: BEAM, frame: beamFrame, signs: []signs{needing(`{,[{file,"`).from("{["), needing("in function :/", "in call from :/").from("i"), needing(".e:1: /", ".e:1: (", ".e:1: {")}, mark: beamMark, inApp: beamInApp, identity: beamIdentity},
	{language: PowerShell, frame: powershellFrame, signs: []signs{needing(".ps1:1", ", : 1").to("1")}, at: needing(".ps1:1", ", : 1").to("1"),
		mark: powershellMark, inApp: powershellInApp, identity: powershellIdentity},
	{language: Perl, frame: perlFrame, signs: []signs{needing(" called at line 1")}, mark: perlMark, inApp: perlInApp, identity: perlIdentity},
	{language: Lua, frame: luaFrame, signs: []signs{needing(": in ")}, clean: asIs, mark: luaMark, inApp: luaInApp, identity: luaIdentity},
	{language: Julia, frame: juliaFrame, signs: []signs{needing("[1]").from("["), needing("@ .jl:1").from("@")}, intros: juliaIntros,
		mark: noMarks, inApp: juliaInApp, identity: juliaIdentity, twoLines: true},
	{language: Haskell, frame: haskellFrame, signs: []signs{needing(", called at hs:1")}, clean: asIs, mark: haskellMark, inApp: haskellInApp, identity: haskellIdentity},
	{language: R, frame: rFrame, signs: []signs{needing("1: ()").from("1").to(")1")}, clean: asIs, mark: rMark, inApp: rInApp, identity: rIdentity},
	{language: Native, frame: nativeFrame, signs: []signs{needing("#1 ").from("#1"), needing("1 x", "1 !", "1 `", "1 @").from("1"), needing("@ ").from("@"), needing("=x: (").from("="), needing("!", "`frame #", "+0x/0x", "([0x])")}, at: needing("1"), clean: nativeLine, intros: nativeIntros,
		mark: nativeMark, inApp: nativeInApp, own: nativeOwn, identity: nativeIdentity},
	{language: Native, frame: backwardFrame, signs: []signs{needing(`#1 ", in `)}, clean: nativeLine, intros: nativeIntros,
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
