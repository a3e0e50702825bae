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

// runtime is how a language names things, in whatever form they are printed.
type runtime struct {
	language Language
	folders  []string                          // that hold libraries
	inApp    func(f *Frame) bool               // distinguishes own code from libraries in other folders; nil: all is own there
	home     func(module string) string        // the part of a module's name that its vendor chose; nil where paths distinguish own code
	own      func(frames []Frame)              // corrects inApp for an exception's frames, the innermost first; nil: inApp suffices
	identity func(dst []byte, f *Frame) []byte // appends what names a frame in every occurrence; nothing if it does not count
	named    func(s *Span)                     // corrects type and message of an exception; nil: nothing is to be
}

// isOwn reports whether a call is the sender's own.
func (r *runtime) isOwn(f *Frame) bool {
	return (r.inApp == nil || r.inApp(f)) && (len(r.folders) == 0 || f.File == "" || !isBelow(f.File, r.folders...))
}

// syntax is how a runtime prints traces. Its functions get lines without line breaks.
type syntax struct {
	*runtime
	forms  []form                      // of calls; one with a file and no function belongs to the line before it
	bare   func(line string) string    // drops what may be before a call; nil: nothing is to be
	other  func(l line, f *Frame) bool // reads calls that have no form; nil: all have
	signs  []sign                      // of the lines that may be such calls
	clean  func(line string) string    // prepares a line for marks and mark; nil: it is trimmed
	marks  []markForm                  // of lines that begin or end exceptions
	mark   func(l line) mark           // recognizes other such lines; nil: there are none
	opens  func(l line) mark           // reads frames that begin an exception and name it; nil: none does
	places []form                      // with the file of a syntax error, or of an error without calls; none: it is printed as a frame
	layout
}

// layout is in which order a trace is printed.
type layout uint8

const (
	twoLines   layout = 1 << iota // a call's place has its own line
	placeFirst                    // the call is below its place
	crashLast                     // the innermost call is printed last
)

func (l layout) has(one layout) bool { return l&one != 0 }

// frame reads the call in a line.
func (s *syntax) frame(l line, f *Frame) bool {
	bare := l
	if s.bare != nil {
		bare.string = s.bare(l.string)
	}
	return frameIn(bare, f, s.forms) || s.other != nil && s.other(l, f)
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

// markOf reads a line that is no frame.
func (s *syntax) markOf(l line) mark {
	if s.clean != nil {
		l.string = s.clean(l.string)
	} else {
		l.string = strings.TrimSpace(l.string)
	}
	if m := markIn(l, s.marks); m.kind != noMark || s.mark == nil {
		return m
	}
	return s.mark(l)
}

func asIs(line string) string { return line }

// The languages of syntaxes.
var (
	javaRuntime   = runtime{language: Java, inApp: func(f *Frame) bool { return !javaLibraries.contains(f.Module) }, home: javaHome, identity: javaIdentity}
	scriptRuntime = runtime{language: JavaScript, inApp: javascriptInApp, identity: javascriptIdentity}
	pythonRuntime = runtime{language: Python, folders: pythonPackages, inApp: pythonInApp, identity: pythonIdentity}
	goRuntime     = runtime{language: Go, inApp: goInApp, own: goOwn, identity: goIdentity}
	dotnetRuntime = runtime{language: DotNet, identity: dotnetIdentity,
		home:  func(class string) string { return class[:max(strings.IndexByte(class, '.'), 0)] },
		inApp: func(f *Frame) bool { return f.Module != "" && !dotnetLibraries.contains(f.Module) }}
	rubyRuntime   = runtime{language: Ruby, folders: rubyFolders, inApp: rubyInApp, own: rubyOwn, identity: rubyIdentity}
	phpRuntime    = runtime{language: PHP, inApp: phpInApp, own: phpOwn, identity: phpIdentity}
	rustRuntime   = runtime{language: Rust, folders: strings.Fields("/rustc/ /.cargo/ /cargo/registry/"), inApp: rustInApp, identity: rustIdentity}
	dartRuntime   = runtime{language: Dart, inApp: dartInApp, identity: dartIdentity, named: dartSpan}
	nativeRuntime = runtime{language: Native, inApp: nativeInApp, own: nativeOwn, identity: nativeIdentity}
	reportRuntime = runtime{language: Unknown, inApp: unknownInApp, identity: unknownIdentity}
	placedRuntime = runtime{language: Unknown, inApp: unknownInApp, identity: unknownIdentity}
)

// syntaxes, in the order in which they are tried; a tie goes to the earlier one, and java is the first.
var syntaxes = [...]syntax{
	{runtime: &javaRuntime, other: javaFrame, signs: []sign{{needs: "(.)", last: ")"}, {needs: "(.)at ", first: "[>|Aa"}},
		clean: javaLine, marks: javaMarks, mark: javaMark},
	{runtime: &scriptRuntime, other: javascriptFrame,
		signs: []sign{
			{needs: "@:1", last: "1"}, {needs: "/:1", last: "1"}, {needs: "@[native code]"}, {needs: ":wasm-function[@"},
			{needs: ":wasm-function[/"}, {needs: "at ", first: "a"},
		},
		marks: javascriptMarks, mark: javascriptMark, places: javascriptPlaces},
	{runtime: &pythonRuntime, forms: pythonForms, bare: pythonLine, clean: asIs, mark: pythonMark, layout: crashLast},
	{runtime: &pythonRuntime, forms: faultForms, clean: asIs, marks: faultMarks},
	{runtime: &goRuntime, other: goFrame, signs: goSigns, clean: asIs, marks: goMarks, layout: twoLines},
	{runtime: &dotnetRuntime, forms: dotnetForms, other: dotnetFrame,
		signs: []sign{{needs: "()", first: "abcdefghijklmnopqrstuvwxyz場"}, {needs: "(:line 1)"}},
		clean: asIs, mark: dotnetMark},
	{runtime: &rubyRuntime, forms: rubyForms, marks: rubyMarks, mark: rubyMark, opens: rubyOpens},
	{runtime: &rubyRuntime, forms: terminalForms, marks: rubyMarks, mark: rubyMark, opens: rubyTerminalOpens, layout: crashLast},
	{runtime: &phpRuntime, forms: phpForms, marks: phpMarks, places: phpPlaces},
	{runtime: &phpRuntime, forms: xdebugForms, marks: phpMarks, layout: crashLast},
	{runtime: &phpRuntime, forms: collisionForms, mark: collisionMark, layout: placeFirst},
	{runtime: &rustRuntime, forms: rustForms, clean: asIs, marks: rustMarks, places: rustPlaces, layout: twoLines},
	{runtime: &dartRuntime, forms: dartForms, marks: dartMarks, mark: dartMark},
	{runtime: &beamRuntime, forms: beamForms, marks: beamMarks},
	{runtime: &shellRuntime, forms: powershellForms, marks: powershellMarks},
	{runtime: &perlRuntime, forms: perlForms, marks: perlMarks},
	{runtime: &luaRuntime, forms: luaForms, clean: asIs, marks: luaMarks},
	{runtime: &juliaRuntime, forms: juliaForms, marks: juliaMarks, layout: twoLines},
	{runtime: &haskellRuntime, forms: haskellForms, clean: asIs, marks: haskellMarks},
	{runtime: &rRuntime, forms: rForms, clean: asIs, marks: rMarks},
	{runtime: &nativeRuntime, forms: nativeForms, other: nativeFrame,
		signs: []sign{
			{needs: "#1 ", first: "#1"}, {needs: "1 x", first: "1"}, {needs: "1 !", first: "1"}, {needs: "1 `", first: "1"},
			{needs: "1 @", first: "1"}, {needs: "!"}, {needs: "`frame #"}, {needs: "+0x/0x"}, {needs: "([0x])"}, {needs: "at 1", first: "a"},
		},
		clean: nativeLine, marks: nativeMarks, mark: nativeMark},
	{runtime: &nativeRuntime, forms: backwardForms, clean: nativeLine, marks: nativeMarks, mark: nativeMark, layout: crashLast},
}

// The syntaxes of any other language: unknown reads reports, placed calls.
var (
	unknownSyntax    = syntax{runtime: &reportRuntime, other: unknownFrame, opens: unknownOpens}
	placedSyntax     = syntax{runtime: &placedRuntime, other: placedFrame, mark: placedMark}
	placedLastSyntax = syntax{runtime: &placedRuntime, other: placedFrame, mark: placedLastMark, layout: crashLast}
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
