package trace

import "strings"

// Lua: "/app/cart.lua:12: in function 'total'", "[C]: in function 'error'",
// "...long/path/cart.lua:5: in function <...cart.lua:3>".

var luaForms = []form{
	formOf("[C]: in $fn").checked(func(f *Frame) bool {
		f.File, f.Function = "[C]", luaName(f.Function)
		return true
	}),
	formOf("$place~.lua: in $fn").checked(luaCall), formOf("$place~]: in $fn").checked(luaCall),
}

func luaCall(f *Frame) bool {
	f.Function = luaName(f.Function)
	return true
}

// luaName is the name in "function 'total'", "method 'total'", "upvalue 'total'", "function 'cart.total'",
// "main chunk".
func luaName(s string) string {
	if s == "main chunk" {
		return s
	}
	open := strings.IndexAny(s, "'`")
	if open < 0 { // "function <a.lua:3>"
		return ""
	}
	return typeBreaks.afterLast(strings.TrimRight(s[open+1:], "'"))
}

// luaMarks read the first line, "lua: cart.lua:12: no such cart".
var luaMarks = []markForm{{header, formOf("$_.lua:$n: $msg")}}

func luaInApp(f *Frame) bool {
	return f.File != "[C]" && !isBelow(f.File, "/share/lua/", "/lualib/", "/luarocks/")
}

// luaIdentity is file and function, since a function has the name by which it was called.
func luaIdentity(dst []byte, f *Frame) []byte {
	if f.File == "[C]" {
		return dst
	}
	return appendCall(dst, fileStem(f, ".lua"), f.Function)
}
