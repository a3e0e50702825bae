package sourcemap

import (
	"path"
	"strings"
	"unicode/utf8"
)

// maxName is the longest name that is kept, in bytes.
const maxName = 300

// clip keeps a name's last bytes: of a path they say the most.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	name = name[len(name)-maxName:]
	for name != "" && !utf8.RuneStart(name[0]) {
		name = name[1:]
	}
	return name
}

// sourceName is the path of a source within its project: without what
// bundlers put before it, "webpack://shop/./src/cart.ts?1f2e".
func sourceName(root, source string) string {
	if source == "" {
		return ""
	}
	if root != "" && !strings.HasPrefix(source, "/") && !strings.Contains(source, "://") {
		source = strings.TrimSuffix(root, "/") + "/" + source
	}
	source = withoutOrigin(source)
	if i := strings.IndexAny(source, "?#"); i > 0 {
		source = source[:i]
	}
	source = path.Clean(strings.ReplaceAll(source, `\`, "/"))
	for strings.HasPrefix(source, "../") {
		source = source[len("../"):]
	}
	return clip(strings.ToValidUTF8(source, "\uFFFD"))
}

// withoutOrigin drops a scheme and a host: "https://cdn.example.com/a.js".
// The path of a file keeps its slash.
func withoutOrigin(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || strings.ContainsAny(scheme, "/?#") {
		return address
	}
	if scheme == "file" {
		return rest
	}
	_, rest, _ = strings.Cut(rest, "/")
	return rest
}

// ScriptName is the name by which a script's map is found: "~/" and its path,
// whatever its scheme, host and query.
func ScriptName(address string) string {
	address = withoutOrigin(strings.TrimSpace(address))
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return "~" + path.Clean("/"+strings.TrimPrefix(strings.ReplaceAll(address, `\`, "/"), "~"))
}

// DebugID is a debug id as it is compared: 32 hexadecimal digits;
// empty for any other text.
func DebugID(text string) string {
	text = strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(text) != 32 || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}
