package console

import "unicode/utf8"

// indent formats compact JSON over several lines, up to limit bytes at
// any depth. Other text is only cut at the limit.
func indent(text []byte, limit int) (indented string, cut bool) {
	out, depth := make([]byte, 0, limit), 0
	for i := 0; i < len(text); i++ {
		if len(out) > limit {
			return beginning(string(out), limit)
		}
		switch c := text[i]; {
		case c == '"':
			length := stringLength(text[i:], limit)
			out = append(out, text[i:i+length]...)
			i += length - 1
		case (c == '{' || c == '[') && i+1 < len(text) && text[i+1] == c+2: // empty
			out = append(out, c, c+2)
			i++
		case c == '{' || c == '[':
			depth++
			out = newLine(append(out, c), depth)
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			out = append(newLine(out, depth), c)
		case c == ',':
			out = newLine(append(out, c), depth)
		case c == ':':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
		}
	}
	return beginning(string(out), limit)
}

func newLine(out []byte, depth int) []byte {
	out = append(out, '\n')
	for range depth {
		out = append(out, ' ', ' ')
	}
	return out
}

// stringLength is the length of the string at the beginning of text,
// quotes counted; little more than limit.
func stringLength(text []byte, limit int) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return i + 1
		case i > limit:
			return i
		case text[i] == '\\':
			i++
		}
	}
	return len(text)
}

// beginning returns as much of text as fits into limit bytes without
// cutting a character.
func beginning(text string, limit int) (begun string, cut bool) {
	if len(text) <= limit {
		return text, false
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…", true
}
