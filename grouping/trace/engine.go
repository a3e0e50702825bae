package trace

import "strings"

// JavaScript engines word the same mistake differently, and quote
// code, whose variables bundlers rename. They agree on the kind
// of mistake and on the property's name, which is not renamed.

// phrase is how one engine words a mistake: a
// beginning ("" for any), and code between two marks.
type phrase struct {
	mistake          string
	begin, from, end string
	code             quoted
}

// quoted is what a message quotes.
type quoted uint8

const (
	quotesNothing quoted = iota
	quotesCode           // "e.total": the last name is a property, a single one a variable
	quotesName           // as it was written
)

// phrases are those of Chrome and Node, Firefox, Safari.
var phrases = [...]phrase{
	{"no value", "Cannot read propert", "reading '", "'", quotesName},
	{"no value", "Cannot set propert", "setting '", "'", quotesName},
	{"no value", "Cannot read property '", "", "' of ", quotesName},
	{"no value", "Cannot set property '", "", "' of ", quotesName},
	{"no value", "Cannot destructure property '", "", "'", quotesName},
	{"no value", `can't access property "`, "", `"`, quotesName},
	{"no value", "undefined is not an object", "evaluating '", "')", quotesCode},
	{"no value", "null is not an object", "evaluating '", "')", quotesCode},
	{"no value", "", "", " is undefined", quotesCode},
	{"no value", "", "", " is null", quotesCode},
	{"no function", "", "", " is not a function", quotesCode},
	{"no constructor", "", "", " is not a constructor", quotesCode},
	{"not defined", "", "", " is not defined", quotesName},
	{"not defined", "Can't find variable: ", "", "", quotesName},
	{"no module", "Failed to fetch dynamically imported module", "", "", quotesNothing},
	{"no module", "error loading dynamically imported module", "", "", quotesNothing},
	{"no module", "Importing a module script failed", "", "", quotesNothing},
	{"no network", "Failed to fetch", "", "", quotesNothing},
	{"no network", "NetworkError when attempting to fetch resource", "", "", quotesNothing},
	{"no network", "Load failed", "", "", quotesNothing},
}

// EngineMistake returns the mistake that a message of an engine's
// error reports, and the missing name; "" where it has none.
func EngineMistake(typ, message string) (mistake, missing string) {
	if !javascriptEngine[typ] {
		return "", ""
	}
	message = strings.TrimSpace(message)
	for i := range phrases {
		if p := &phrases[i]; strings.HasPrefix(message, p.begin) {
			if code, ok := p.cut(message[len(p.begin):]); ok {
				return p.mistake, p.missing(code)
			}
		}
	}
	return "", ""
}

// IsNetworkMistake reports whether something could not be fetched: not
// by a mistake of the function that tried, though the type says so.
func IsNetworkMistake(typ, message string) bool {
	mistake, _ := EngineMistake(typ, message)
	return mistake == "no network" || mistake == "no module"
}

// cut takes the code out of what follows the beginning.
func (p *phrase) cut(s string) (code string, ok bool) {
	if p.from != "" {
		if _, s, ok = strings.Cut(s, p.from); !ok {
			return "", false
		}
	}
	if p.end == "" {
		return s, true
	}
	code, _, ok = strings.Cut(s, p.end)
	return code, ok && (p.begin != "" || isCode(code))
}

// missing is the name in quoted code that
// no bundler changes; "" if there is none.
func (p *phrase) missing(code string) string {
	if p.code == quotesCode {
		var property bool
		if _, code, property = cutLast(withoutCall(code), "."); !property {
			return ""
		}
	}
	if p.code == quotesNothing || !isIdentifier(code) {
		return ""
	}
	return code
}

// withoutCall drops what is done with a property, "e.total()"
// and "e.total = 1", and the parenthesis of "(0 , e.total)".
func withoutCall(code string) string {
	code, _, _ = strings.Cut(code, " = ")
	depth := 0
	for i := len(code) - 1; i >= 0 && code[len(code)-1] == ')'; i-- {
		switch code[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 && i == 0 {
			return code[1 : len(code)-1]
		} else if depth == 0 {
			return code[:i]
		}
	}
	return code
}

// isCode distinguishes an expression from
// words: blanks are in parentheses only.
func isCode(s string) bool {
	blank := strings.IndexByte(s, ' ')
	return s != "" && (blank < 0 || strings.IndexByte(s[:blank], '(') >= 0)
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '_' && c != '$' && c < 0x80 {
			return false
		}
	}
	return s != "" && !isDigit(s[0])
}

// Elixir and Erlang: "(shop 0.1.0) lib/cart.ex:12: Cart.total/2" and
// {cart,total,2,[{file,"src/cart.erl"},{line,12}]}.

func beamFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	if strings.HasPrefix(strings.TrimLeft(s, "["), "{") {
		return erlangFrame(strings.TrimLeft(s, "["))
	}
	if f, ok := erlangCall(s); ok {
		return f, true
	}
	f := Frame{}
	if strings.HasPrefix(s, "(") {
		end := strings.Index(s, ") ")
		if end < 0 {
			return Frame{}, false
		}
		f.Module, _, _ = strings.Cut(s[1:end], " ")
		s = s[end+2:]
	}
	place, call, ok := strings.Cut(s, ": ")
	if !ok {
		return Frame{}, false
	}
	file, n, ok := cutNumber(place)
	f.File, f.Line, f.Function = file, n, beamCall(call)
	return f, ok && (strings.HasSuffix(file, ".ex") || strings.HasSuffix(file, ".exs") || strings.HasSuffix(file, ".erl")) && f.Function != ""
}

// beamCall names a function by its arity.
func beamCall(s string) string {
	if open := strings.IndexByte(s, '('); open > 0 {
		s = s[:open]
	}
	if i := strings.LastIndex(s, " in "); strings.HasPrefix(s, "anonymous fn") && i > 0 {
		s = s[i+len(" in "):]
	}
	return s
}

func erlangFrame(s string) (Frame, bool) {
	place := strings.Index(s, "[{file,\"")
	module, rest, ok := strings.Cut(s[1:], ",")
	function, _, called := strings.Cut(rest, ",")
	if place < 0 || !ok || !called || strings.ContainsAny(module+function, " {[(") {
		return Frame{}, false
	}
	f := Frame{Module: module, Function: function}
	f.File, rest, _ = strings.Cut(s[place+len("[{file,\""):], "\"")
	if _, digits, ok := strings.Cut(rest, "{line,"); ok {
		digits, _, _ = strings.Cut(digits, "}")
		f.Line = number(strings.TrimSpace(digits))
	}
	return f, true
}

// erlangCall reads what the shell prints: "in function  cart:total/2
// (src/cart.erl, line 12)", "in call from web:show/2 (src/web.erl, line 9)".
func erlangCall(s string) (f Frame, ok bool) {
	if s, ok = strings.CutPrefix(s, "in function "); !ok {
		if s, ok = strings.CutPrefix(s, "in call from "); !ok {
			return Frame{}, false
		}
	}
	call, place, _ := strings.Cut(strings.TrimSpace(s), " (")
	f.Module, f.Function, ok = strings.Cut(call, ":")
	f.Function, _, _ = strings.Cut(f.Function, "/")
	file, line, _ := strings.Cut(strings.TrimSuffix(place, ")"), ", line ")
	f.File, f.Line = file, number(line)
	return f, ok && f.Function != ""
}

func beamMark(line string) mark {
	s := strings.TrimSpace(line)
	if before, rest, ok := strings.Cut(s, "** ("); ok && (before == "" || strings.HasSuffix(before, "] ")) {
		if typ, message, ok := strings.Cut(rest, ")"); ok {
			return mark{header, typ, strings.TrimSpace(message)}
		}
	}
	if rest, ok := strings.CutPrefix(s, "** {"); ok { // the reason, and where
		if typ, _, ok := strings.Cut(rest, ",[{"); ok {
			return mark{kind: header, typ: typ}
		}
	}
	return classHeader(s)
}

var beamLibraries = wordSet(`elixir stdlib kernel phoenix plug plug_cowboy cowboy ranch ecto ecto_sql db_connection postgrex logger mix ex_unit absinthe
bandit thousand_island phoenix_live_view oban broadway gen_stage jason finch mint req tesla hackney erts gen_server proc_lib lists gen supervisor`)

func beamInApp(f *Frame) bool {
	return !beamLibraries[f.Module] && !strings.HasPrefix(f.File, "deps/") && !strings.Contains(f.File, "/deps/")
}

func beamIdentity(dst []byte, f *Frame) []byte {
	if strings.HasSuffix(f.File, ".erl") && f.Module != "" && strings.IndexByte(f.Function, '.') < 0 {
		dst = append(append(dst, f.Module...), ':')
	}
	name := f.Function
	if before, _, inlined := strings.Cut(name, "\"-"); inlined { // Enum."-map/2-lists^map/1-0-"/2
		name = before
	}
	name, _, _ = strings.Cut(name, "/")
	return append(dst, strings.TrimPrefix(name, ":")...)
}
