package trace

import "strings"

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
