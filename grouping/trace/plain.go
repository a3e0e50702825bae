package trace

import "strings"

// Runtimes that print calls in few forms.

// Perl, as Carp prints it: "Shop::Cart::total(7, "x") called at /app/Cart.pm line 12". The place is that of the call.
var (
	perlForms = []form{
		formOf("$fn* called at $file* line $line").checked(withoutArguments), formOf("$fn* called at $file* line $line.").checked(withoutArguments),
	}
	// perlMarks read the first line, whose place is that of the innermost call.
	perlMarks   = []markForm{{header, formOf("$msg* at $_* line $n.")}, {header, formOf("$msg* at $_* line $n")}}
	perlRuntime = runtime{
		language: Perl,
		folders:  strings.Fields("/perl5/ /share/perl/ /lib/perl/ /site_perl/ /vendor_perl/ /local/lib/"),
		identity: func(dst []byte, f *Frame) []byte {
			if strings.HasPrefix(f.Function, "eval ") {
				return dst
			}
			return append(dst, f.Function...)
		},
	}
)

// R, as traceback prints it, the innermost call first: "3: total(cart) at cart.R#12".
var (
	rForms   = []form{formOf("$n: $fn^($_*) at $file*#$line"), formOf("$n: $fn^($_*)")}
	rMarks   = []markForm{{header, formOf("Error in $_ : $msg")}}
	rRuntime = runtime{
		language: R,
		inApp:    func(f *Frame) bool { return !rCore[f.Function] && !strings.Contains(f.Function, "::") },
		identity: func(dst []byte, f *Frame) []byte { return append(dst, f.Function...) },
	}
)

// Haskell, as HasCallStack prints it: "  total, called at src/Cart.hs:12:3 in shop-0.1:Cart", below "shop: no such cart".
var (
	haskellForms   = []form{formOf("$fn, called at $at~hs in $mod"), formOf("$fn, called at $at~hs")}
	haskellMarks   = []markForm{{header, formOf("$_^: $msg")}}
	haskellRuntime = runtime{
		language: Haskell,
		inApp: func(f *Frame) bool {
			return !strings.HasPrefix(f.File, "libraries/") && !strings.HasPrefix(f.Module, "base-") && f.Function != "error" && f.Function != "undefined"
		},
		// identity is module, without its package's version and hash, and function.
		identity: func(dst []byte, f *Frame) []byte {
			_, module, _ := cutLast(f.Module, ":")
			return appendCall(dst, module, f.Function)
		},
	}
)

// Lua: "/app/cart.lua:12: in function 'total'", "[C]: in function 'error'",
// "...long/path/cart.lua:5: in function <...cart.lua:3>", below "lua: cart.lua:12: no such cart".
var (
	luaForms   = []form{formOf("[C]: in $fn").checked(luaCall), formOf("$place~.lua: in $fn").checked(luaCall), formOf("$place~]: in $fn").checked(luaCall)}
	luaMarks   = []markForm{{header, formOf("$_.lua:$n: $msg")}}
	luaRuntime = runtime{
		language: Lua,
		folders:  strings.Fields("/share/lua/ /lualib/ /luarocks/"),
		inApp:    func(f *Frame) bool { return f.File != "[C]" },
		// identity is file and function, since a function has the name by which it was called.
		identity: func(dst []byte, f *Frame) []byte {
			if f.File == "[C]" {
				return dst
			}
			return appendCall(dst, fileStem(f, ".lua"), f.Function)
		},
	}
)

// luaCall finds the name in "function 'total'", "method 'cart.total'", "main chunk"; "function <a.lua:3>" has none.
func luaCall(f *Frame) bool {
	if f.File == "" {
		f.File = "[C]"
	}
	if open := strings.IndexAny(f.Function, "'`"); open >= 0 {
		f.Function = typeBreaks.afterLast(strings.TrimRight(f.Function[open+1:], "'"))
	} else if f.Function != "main chunk" {
		f.Function = ""
	}
	return true
}

// Julia: " [1] total(cart::Cart) at /app/cart.jl:12", and since 1.6 on two lines, " [1] total(cart::Cart)" and
// " @ Shop /app/cart.jl:12".
var (
	juliaForms = []form{
		formOf("@ $mod* $place").checked(isJuliaFile), formOf("@ $mod* $place [inlined]").checked(isJuliaFile),
		formOf("[$n] $fn* at $place").checked(juliaCall), formOf("[$n] $fn* at $place [inlined]").checked(juliaCall),
		formOf("[$n] $fn*)").checked(juliaCall),
	}
	juliaMarks     = []markForm{{header, formOf("ERROR: $error")}, {cause, formOf("caused by: $error")}}
	juliaLibraries = wordSet("Base Core Main.Base Test Distributed REPL Pkg")
	juliaRuntime   = runtime{
		language: Julia,
		folders:  strings.Fields("/.julia/packages/ /share/julia/"),
		inApp:    func(f *Frame) bool { return !strings.HasPrefix(f.File, "./") && !juliaLibraries[f.Module] },
		identity: func(dst []byte, f *Frame) []byte {
			if f.Function == "top-level scope" {
				return dst
			}
			return appendCall(dst, fileStem(f, ".jl"), f.Function)
		},
	}
)

func isJuliaFile(f *Frame) bool { return strings.Contains(f.File, ".jl") }

// juliaCall drops arguments; "(::var"#3#4")(x)" has no name, and "#total#5" is one with keywords.
func juliaCall(f *Frame) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Function[:cutAt(f.Function, 0, '(')], "#"), "#")
	if name == "" && f.Function != "" {
		name = "anonymous"
	}
	f.Function = strings.TrimSpace(name)
	return f.Function != ""
}

// PowerShell: "at Get-Cart, C:\shop\cart.ps1: line 12", and of an error itself "At C:\shop\cart.ps1:12 char:5". The
// words are translated, and French has a blank before each colon.
var (
	powershellForms = []form{
		formOf("$mod^ $fn, $file*: $_^ $line").checked(powershellCall),
		formOf("$_^ $place*~.ps1 $_^:$n").checked(powershellPlace), formOf("$_^ $place*~.ps1 : $n").checked(powershellPlace),
	}
	// powershellMarks read also an error's category:
	// "+ CategoryInfo : ObjectNotFound: (C:\a:String) [Get-Item], ItemNotFoundException".
	powershellMarks = []markForm{{trailer, formOf("+ CategoryInfo$_*], $type")}, {header, formOf("$class")}}
	shellRuntime    = runtime{
		language: PowerShell,
		folders:  strings.Fields("/WindowsPowerShell/ /PowerShell/Modules/ /powershell/Modules/"),
		// identity is file and function. Typed commands have no file, blocks no name.
		identity: func(dst []byte, f *Frame) []byte {
			if strings.HasPrefix(f.File, "<") { // "<No file>"
				return dst
			}
			name, _, _ := strings.Cut(f.Function, "<") // "Get-Cart<Process>"
			return append(append(appendFileName(dst, f.File), ':'), name...)
		},
	}
)

// powershellCall tells "at" from other words.
func powershellCall(f *Frame) bool {
	at := f.Module
	f.Module = ""
	return dotnetAt[at] && f.Function != ""
}

// powershellPlace drops the words before a path.
func powershellPlace(f *Frame) bool {
	begin := max(strings.Index(f.File, `:\`)-1, strings.Index(f.File, " /")+1)
	f.File = f.File[begin:]
	return true
}

// Elixir and Erlang: "(shop 0.1.0) lib/cart.ex:12: Cart.total/2" and {cart,total,2,[{file,"src/cart.erl"},{line,12}]}.
var (
	beamForms = []form{
		formOf("{$mod^,$fn^,$_[{file,\"$file\"$_{line,$line}$_"), formOf("[{$mod^,$fn^,$_[{file,\"$file\"$_{line,$line}$_"),
		formOf("{$mod^,$fn^,$_[{file,\"$file\"$_"), formOf("[{$mod^,$fn^,$_[{file,\"$file\"$_"),
		formOf("in function $mod^:$fn/$_ ($file~.erl, line $line)"), formOf("in call from $mod^:$fn/$_ ($file~.erl, line $line)"),
		formOf("($mod) $place~.ex|.exs|.erl: $fn").checked(beamCall), formOf("$place~.ex|.exs|.erl: $fn").checked(beamCall),
	}
	beamMarks = []markForm{
		{header, formOf("** ($type) $msg")}, {header, formOf("$_] ** ($type) $msg")}, {header, formOf("** {$type,[{$_")}, {header, formOf("$class")},
	}
	beamRuntime = runtime{
		language: BEAM,
		folders:  []string{"/deps/"},
		inApp:    func(f *Frame) bool { return !beamLibraries[f.Module] && !strings.HasPrefix(f.File, "deps/") },
		identity: func(dst []byte, f *Frame) []byte {
			if strings.HasSuffix(f.File, ".erl") && f.Module != "" && strings.IndexByte(f.Function, '.') < 0 {
				dst = append(append(dst, f.Module...), ':')
			}
			name, _, _ := strings.Cut(f.Function, "\"-") // Enum."-map/2-lists^map/1-0-"/2
			return append(dst, strings.TrimPrefix(name[:cutAt(name, 0, '/')], ":")...)
		},
	}
)

// beamCall names a function without its arguments, and its module without the version.
func beamCall(f *Frame) bool {
	f.Module, _, _ = strings.Cut(f.Module, " ")
	withoutArguments(f)
	if i := lastIndex(f.Function, " in "); strings.HasPrefix(f.Function, "anonymous fn") && i > 0 {
		f.Function = f.Function[i+len(" in "):]
	}
	return f.Function != ""
}

// Dart and Flutter: "#0 Cart.total (package:shop/cart.dart:12:5)", on the web "package:shop/cart.dart 12:5 Cart.total".

var dartForms = []form{
	formOf("#$n $fn* ($file)").checked(isDartCall),
	formOf("$file^~.dart $line:$col $fn").checked(isDartCall), formOf("$file^~.dart $line:$col").checked(isDartCall),
}

func isDartCall(f *Frame) bool {
	place := f.File
	if file, line, column, ok := cutPosition(place); ok {
		f.File, f.Line, f.Column = file, line, column
	}
	return beginsWithAny(place, "package:", "dart:", "file:///", "org-dartlang") && (place[0] != 'f' || strings.Contains(place, ".dart"))
}

// dartMarks read also what Flutter prints above the message and the trace.
var dartMarks = []markForm{
	{messageBelow, formOf("Unhandled exception:$_")}, {messageBelow, formOf("The following $type was thrown$_")},
	{header, formOf("$_Unhandled Exception: $msg")},
}

// dartMark reads an error that is printed alone.
func dartMark(l line) mark {
	if typ, _ := dartError(l.string); typ != "" {
		return mark{kind: header, message: l.string}
	}
	return mark{}
}

// dartErrors are how errors are printed, and the types of those that are printed without their name.
var dartErrors = [...]namedForm{
	{"StateError", formOf("Bad state: $msg")}, {"ArgumentError", formOf("Invalid argument(s): $msg")},
	{"ArgumentError", formOf("Invalid argument ($_): $msg")}, {"ArgumentError", formOf("Invalid argument ($_")},
	{"RangeError", formOf("RangeError ($_): $msg")}, {"RangeError", formOf("RangeError ($_")}, {"UnsupportedError", formOf("Unsupported operation: $msg")},
	{"ConcurrentModificationError", formOf("Concurrent modification$_")}, {"TypeError", formOf("type '$_")},
	{"TypeError", formOf("Null check operator used$_")}, {"StackOverflowError", formOf("Stack Overflow$_")},
	{"OutOfMemoryError", formOf("Out of Memory$_")}, {"TimeoutException", formOf("TimeoutException after$_")},
	{"", formOf("Instance of '$type'")}, {"AssertionError", formOf("$_Failed assertion: $_")},
}

// dartError finds the type of an error by what it prints: "Bad state: No element", "Instance of 'Closed'",
// "PlatformException(io, no route, null)".
func dartError(s string) (typ, message string) {
	for i := range dartErrors {
		one := &dartErrors[i]
		m := mark{typ: one.name}
		if !one.read(s, nil, &m) {
			continue
		}
		if m.message == "" && one.name != "" {
			m.message = s
		}
		return m.typ, m.message
	}
	end := max(strings.IndexAny(s, "([:"), 0)
	if name := strings.TrimSpace(s[:end]); isErrorName(name) {
		return name, strings.TrimSpace(s[end+1:])
	}
	return "", s
}

// dartSpan names an exception, if need be by its message.
func dartSpan(s *Span) {
	typ, message := dartError(s.Message)
	if s.Type = strings.TrimLeft(s.Type, "_"); s.Type == "" || s.Type == typ {
		s.Type, s.Message = typ, message
	}
}

func dartInApp(f *Frame) bool {
	if name, ok := strings.CutPrefix(f.File, "package:"); ok {
		return !dartLibraries[name[:cutAt(name, 0, '/')]]
	}
	return strings.HasPrefix(f.File, "file:") && !strings.Contains(f.File, "/.pub-cache/")
}

// dartIdentity is file and function. Closures keep the function around them.
func dartIdentity(dst []byte, f *Frame) []byte {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Function, "new "), ".<") // "total.<anonymous closure>", "total.<fn>.<fn>"
	return appendCall(dst, fileStem(f, ".dart"), name)
}
