package trace

import "strings"

// Lua: "/app/cart.lua:12: in function 'total'", "[C]: in function 'error'",
// "...long/path/cart.lua:5: in function <...cart.lua:3>".

func luaFrame(line string) (Frame, bool) {
	s := line[leadingSpace(line):]
	place, name, ok := strings.Cut(s, ": in ")
	if !ok {
		return Frame{}, false
	}
	f := Frame{File: place, Function: luaName(name)}
	if place == "[C]" {
		return f, true
	}
	f.File, f.Line, ok = cutNumber(place)
	return f, ok && (strings.HasSuffix(f.File, ".lua") || strings.HasPrefix(f.File, "["))
}

// luaName is the name in "function 'total'", "method 'total'", "upvalue
// 'total'", "function 'cart.total'", "main chunk".
func luaName(s string) string {
	open := strings.IndexAny(s, "'`")
	if open < 0 {
		if strings.HasPrefix(s, "main chunk") {
			return "main chunk"
		}
		return "" // "function <a.lua:3>"
	}
	name := strings.TrimRight(s[open+1:], "'")
	return name[strings.LastIndexAny(name, ".:")+1:]
}

// luaMark reads the first line, "lua: cart.lua:12: no such cart".
func luaMark(line string) mark {
	i := strings.Index(line, ".lua:")
	if i < 0 {
		return mark{}
	}
	place, message, ok := strings.Cut(line[i:], ": ")
	if _, _, numbered := cutNumber(place); !ok || !numbered {
		return mark{}
	}
	return mark{kind: header, message: message}
}

func luaInApp(f *Frame) bool {
	_, library := after(f.File, "/share/lua/", "/lualib/", "/luarocks/")
	return f.File != "[C]" && !library
}

// luaIdentity is file and function, since a function has the
// name by which it was called.
func luaIdentity(dst []byte, f *Frame) []byte {
	if f.File == "[C]" {
		return dst
	}
	return append(append(append(dst, strings.TrimSuffix(baseName(f.File), ".lua")...), ':'), f.Function...)
}
