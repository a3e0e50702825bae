package trace

import "strings"

// Ruby: "/a/b.rb:13:in `block in fn'", since 3.4 "/a/b.rb:13:in 'Klass#fn'"; the first may end in ": message (Type)".

var rubyForms = []form{
	formOf("from $place:in `$fn'$_").checked(isRubyCall), formOf("from $place:in '$fn'$_").checked(isRubyCall),
	formOf("$place:in `$fn'$_").checked(isRubyCall), formOf("$place:in '$fn'$_").checked(isRubyCall),
}

func isRubyCall(f *Frame) bool {
	return f.Function != "" && !strings.Contains(f.File, ": from ")
}

// terminalForms are those of Ruby 2.5 to 2.7 on a terminal: calls are numbered, and the innermost is last, without a
// number.
var terminalForms = []form{formOf("$n: from $place:in `$fn'"), formOf("$place:in `$fn'$_").checked(isRubyCall)}

var rubyMarks = []markForm{
	{headerBelow, formOf("rake aborted!$_")}, {causeBelow, formOf("Caused by:$_")}, {header, formOf("$_ WARN: $type^: $msg")}, // by Sidekiq
}

func rubyMark(l line) mark {
	if m := railsHeader(l.string); m.kind != noMark {
		return m
	}
	if _, inspected, ok := strings.Cut(l.string, ": #<"); ok && isDigit(l.string[0]) { // by Puma, behind a date
		return markOf(header, strings.TrimSuffix(inspected, ">"))
	}
	return classHeader(l.string)
}

// railsHeader reads an error as Rails logs it, after its tags: "[id] Cart::Closed (it is closed):".
func railsHeader(s string) mark {
	s, whole := strings.CutSuffix(s, "):")
	for tagged := true; tagged && strings.HasPrefix(s, "["); {
		_, s, tagged = strings.Cut(s, "] ")
	}
	typ, message, called := strings.Cut(s, " (")
	named := whole || isErrorName(typ) || strings.Contains(typ, "::") // its message may go on below
	if !called || !named || typ == "" || !isUpper(typ[0]) || notInType.occursIn(typ) || typ == "Traceback" {
		return mark{}
	}
	return mark{header, typ, message}
}

var (
	// rubyOpenings are the lines with which Ruby begins an exception or a cause: "a.rb:1:in 'f': no (KeyError)".
	rubyOpenings     = []markForm{{opening, formOf("$_': $msg* ($type^)")}}
	terminalOpenings = append([]markForm{{another, formOf("$n: from $_")}}, rubyOpenings...)
	rubyFolders      = strings.Fields("/gems/ /lib/ruby/ /rubygems/ /vendor/bundle/")
	classEnds        = marksOf("#.")
)

func rubyOpens(l line) mark { return markIn(l, rubyOpenings) }

// rubyTerminalOpens reads the last line of an exception, which names it. Causes come first.
func rubyTerminalOpens(l line) mark { return markIn(l, terminalOpenings).below() }

func rubyInApp(f *Frame) bool {
	return f.File != "" && !strings.HasPrefix(f.File, "<internal:") && !strings.HasPrefix(f.File, "(eval") &&
		!strings.Contains(f.File, ") ") // as Rails names files of gems: "actionpack (7.0.4) lib/a.rb"
}

// rubyOwn takes functions written in C for the runtime's. Until release 3.4, Ruby printed them with the place of their
// caller.
func rubyOwn(frames []Frame) {
	for i := range len(frames) - 1 {
		f, caller := &frames[i], &frames[i+1]
		if f.Line == caller.Line && f.File == caller.File && f.Function != caller.Function && !strings.Contains(f.Function, " in ") {
			f.InApp = false
		}
	}
}

// rubyIdentity is file and method. A block is named by its method. The class is left out, as not all releases print it.
func rubyIdentity(dst []byte, f *Frame) []byte {
	name := f.Function
	if _, method, block := cutLast(name, " in "); block {
		name = method
	}
	if !strings.HasPrefix(name, "<") { // "<class:Cart>"
		name = classEnds.afterLast(name)
	}
	return appendCall(dst, withoutTemplateNumbers(fileStem(f, ".rb")), withoutTemplateNumbers(name))
}

// withoutTemplateNumbers cuts numbers of template engines off "_app_views_x_html_erb___123_456" and "__tilt_123".
func withoutTemplateNumbers(name string) string {
	if beginsWithAny(name, "_app_", "__tilt_") {
		name = strings.TrimRight(name, "_0123456789")
	}
	return name
}
