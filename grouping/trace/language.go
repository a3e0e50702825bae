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
	// signs tell which lines may be calls; at is what those need
	// that begin with "at ", after blanks at most.
	signs []sign
	at    []string
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

// intro is the beginning of a line, what it means,
// and how the rest is read; nil: it says nothing.
type intro struct {
	begin string
	kind  markKind
	read  func(kind markKind, rest string) mark
}

func messageOf(kind markKind, rest string) mark { return mark{kind: kind, message: rest} }

// markOf reads a line that is no frame.
func (s *syntax) markOf(line string) mark {
	if s.clean == nil {
		line = strings.TrimSpace(line)
	} else {
		line = s.clean(line)
	}
	for i := range s.intros {
		in := &s.intros[i]
		if rest, ok := strings.CutPrefix(line, in.begin); ok && in.read != nil {
			return in.read(in.kind, rest)
		} else if ok {
			return mark{kind: in.kind}
		}
	}
	return s.mark(line)
}

func asIs(line string) string { return line }

// syntaxes, in the order in which they are tried;
// a tie goes to the earlier one, and java is the first.
var syntaxes = [...]syntax{
	{language: Java, frame: javaFrame,
		signs: []sign{{needs: "(.)", last: ")"}, {needs: "(.)at ", first: "[>|A"}}, at: []string{`(.)`},
		clean: javaLine, intros: javaIntros,
		mark: javaMark, inApp: javaInApp, home: javaHome, identity: javaIdentity},
	{language: JavaScript, frame: javascriptFrame,
		signs: []sign{
			{needs: "@:1", last: "1"}, {needs: "/:1", last: "1"}, {needs: "@[native code]"}, {needs: ":wasm-function[@"},
			{needs: ":wasm-function[/"},
		}, at: []string{""},
		intros: javascriptIntros, mark: javascriptMark, inApp: javascriptInApp, identity: javascriptIdentity, place: javascriptPlace},
	{language: Python, frame: pythonFrame,
		signs: []sign{
			{needs: `File "", line 1`}, {needs: ".py in ("}, {needs: ".py:1: in "}, {needs: "<ipython-input-> in "},
			{needs: "Cell In["}, {needs: "File :1 in "}, {needs: "│ :1 in "},
		},
		clean: asIs, mark: pythonMark, inApp: pythonInApp, identity: pythonIdentity, crashLast: true},
	{language: Python, frame: faultFrame,
		signs: []sign{{needs: `File "", line 1 in `}},
		clean: asIs, intros: faultIntros, mark: faultMark, inApp: pythonInApp, identity: pythonIdentity},
	{language: Go, frame: goFrame, signs: goSigns, clean: asIs, intros: goIntros, mark: goMark, inApp: goInApp, own: goOwn, identity: goIdentity, twoLines: true},
	{language: DotNet, frame: dotnetFrame,
		signs: []sign{{needs: "()", first: "abcdefghijklmnopqrstuvwxyz場"}, {needs: "(at :1)", last: ")1"}, {needs: "(:line 1)"}}, at: []string{"()"},
		clean: asIs, mark: dotnetMark, inApp: dotnetInApp, home: dotnetHome, identity: dotnetIdentity},
	{language: Ruby, frame: rubyFrame,
		signs:  []sign{{needs: ":1:in '"}},
		intros: rubyIntros, mark: rubyMark, opens: rubyOpens, inApp: rubyInApp, own: rubyOwn, identity: rubyIdentity},
	{language: Ruby, frame: rubyTerminalFrame,
		signs:  []sign{{needs: ":1:in '"}},
		intros: rubyIntros, mark: rubyMark, opens: rubyTerminalOpens, inApp: rubyInApp, own: rubyOwn, identity: rubyIdentity, crashLast: true},
	{language: PHP, frame: phpFrame,
		signs: []sign{{needs: "#1 ", first: "#"}, {needs: "() at :1.php", last: "1"}},
		mark:  phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, place: phpPlace},
	{language: PHP, frame: xdebugFrame,
		signs: []sign{{needs: "1. () :.php", last: "1"}},
		mark:  phpMark, inApp: phpInApp, own: phpOwn, identity: phpIdentity, crashLast: true},
	{language: PHP, frame: collisionFrame,
		signs: []sign{{needs: ":1.php ", last: "1"}, {needs: ":1artisan ", last: "1"}, {needs: "(::)", last: ")"}}, at: []string{":1.php", ":1artisan"},
		mark: collisionMark, inApp: collisionInApp, identity: collisionIdentity, placeFirst: true},
	{language: Rust, frame: rustFrame,
		signs: []sign{{needs: "1: ", first: "1"}}, at: []string{".rs:1"},
		clean: asIs, intros: rustIntros, mark: rustMark, inApp: rustInApp, identity: rustIdentity, place: rustPlace, callless: true, twoLines: true},
	{language: Dart, frame: dartFrame,
		signs:  []sign{{needs: "#1 (:)", first: "#", last: ")"}, {needs: ".dart 1:1"}},
		intros: dartIntros, mark: dartMark, named: dartSpan, inApp: dartInApp, identity: dartIdentity},
	{language: BEAM, frame: beamFrame,
		signs: []sign{
			{needs: `{,[{file,"`, first: "{["}, {needs: "in function :/", first: "i"}, {needs: "in call from :/", first: "i"},
			{needs: ".e:1: /"}, {needs: ".e:1: ("}, {needs: ".e:1: {"},
		},
		mark: beamMark, inApp: beamInApp, identity: beamIdentity},
	{language: PowerShell, frame: powershellFrame,
		signs: []sign{{needs: ".ps1:1", last: "1"}, {needs: ", : 1", last: "1"}},
		at:    []string{".ps1:1", ", : 1"},
		mark:  powershellMark, inApp: powershellInApp, identity: powershellIdentity},
	{language: Perl, frame: perlFrame,
		signs: []sign{{needs: " called at line 1"}},
		mark:  perlMark, inApp: perlInApp, identity: perlIdentity},
	{language: Lua, frame: luaFrame,
		signs: []sign{{needs: ": in "}},
		clean: asIs, mark: luaMark, inApp: luaInApp, identity: luaIdentity},
	{language: Julia, frame: juliaFrame,
		signs:  []sign{{needs: "[1]", first: "["}, {needs: "@ .jl:1", first: "@"}},
		intros: juliaIntros, mark: noMarks, inApp: juliaInApp, identity: juliaIdentity, twoLines: true},
	{language: Haskell, frame: haskellFrame,
		signs: []sign{{needs: ", called at hs:1"}},
		clean: asIs, mark: haskellMark, inApp: haskellInApp, identity: haskellIdentity},
	{language: R, frame: rFrame,
		signs: []sign{{needs: "1: ()", first: "1", last: ")1"}},
		clean: asIs, mark: rMark, inApp: rInApp, identity: rIdentity},
	{language: Native, frame: nativeFrame,
		signs: []sign{
			{needs: "#1 ", first: "#1"}, {needs: "1 x", first: "1"}, {needs: "1 !", first: "1"}, {needs: "1 `", first: "1"},
			{needs: "1 @", first: "1"}, {needs: "@ ", first: "@"}, {needs: "=x: (", first: "="}, {needs: "!"},
			{needs: "`frame #"}, {needs: "+0x/0x"}, {needs: "([0x])"},
		}, at: []string{"1"},
		clean: nativeLine, intros: nativeIntros,
		mark: nativeMark, inApp: nativeInApp, own: nativeOwn, identity: nativeIdentity},
	{language: Native, frame: backwardFrame,
		signs: []sign{{needs: `#1 ", in `}},
		clean: nativeLine, intros: nativeIntros,
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
