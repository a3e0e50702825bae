package ingest

import (
	"bytes"
	"strings"
)

// A jsonPath names members of an entry: their names, joined by dots. A
// name may have dots itself. A path leads through each element of an array.
type jsonPath string

// find calls each with the values at the path in compact, valid JSON, and
// with the elements of arrays there, until it returns true.
func (p jsonPath) find(object []byte, each func(value []byte) bool) bool {
	if len(object) == 0 {
		return false
	}
	switch object[0] {
	case '[':
		return eachItem(object, func(item []byte) bool { return item[0] == '{' && p.find(item, each) })
	case '{':
		_, found := p.findIn(object, each)
		return found
	}
	return false
}

// findIn is find in an object, of which more text may follow. It returns the
// object's end, so that most objects are read once; 0: it does not know.
func (p jsonPath) findIn(object []byte, each func(value []byte) bool) (end int, found bool) {
	last, found := walk(object, func(name, rest []byte) (end int, found bool) {
		path, begins := strings.CutPrefix(string(p), string(decodedString(name)))
		switch {
		case !begins || path != "" && path[0] != '.':
			return 0, false
		case path != "" && rest[0] == '{':
			return jsonPath(path[1:]).findIn(rest, each)
		}
		end = valueEnd(rest, 0)
		if path == "" {
			return end, visit(rest[:end], each)
		}
		return end, jsonPath(path[1:]).find(rest[:end], each)
	})
	if last < len(object) && object[last] == '}' {
		end = last + 1
	}
	return end, found
}

func visit(value []byte, each func(value []byte) bool) bool {
	return each(value) || value[0] == '[' && eachItem(value, each)
}

// members calls each with the members of an object, names in quotes, until
// it returns true, and returns the offset of what ended it. Of damaged JSON
// it finds some.
func members(object []byte, each func(name, value []byte) bool) (i int, stopped bool) {
	return walk(object, func(name, rest []byte) (end int, stopped bool) {
		end = valueEnd(rest, 0)
		return end, each(name, rest[:end])
	})
}

// walk calls each with the names of an object's members and all that follows
// their colons, until it returns true. It also returns the value's end if it
// knows, else 0.
func walk(object []byte, each func(name, rest []byte) (end int, stopped bool)) (i int, stopped bool) {
	for i = 1; i < len(object) && object[i] != '}'; {
		if object[i] == ',' && i > 1 {
			i++
		}
		colon := valueEnd(object, i)
		if colon+1 >= len(object) || object[i] != '"' || object[colon] != ':' {
			break
		}
		rest := object[colon+1:]
		end, stopped := each(object[i:colon], rest)
		if stopped {
			return i, true
		}
		if end == 0 {
			end = valueEnd(rest, 0)
		}
		i = colon + 1 + end
	}
	return i, false
}

// eachItem calls each with what is in an array, and in arrays in it, until
// it returns true.
func eachItem(array []byte, each func(item []byte) bool) bool {
	for i := 0; i < len(array); {
		switch array[i] {
		case '[', ']', ',':
			i++
		default:
			end := valueEnd(array, i)
			if each(array[i:end]) {
				return true
			}
			i = max(end, i+1)
		}
	}
	return false
}

// valueEnd returns the offset behind the value at i, at most the length.
func valueEnd(text []byte, i int) int {
	if i < len(text) && text[i] == '"' { // most are
		return stringEnd(text, i)
	}
	for depth := 0; i < len(text); {
		switch text[i] {
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
			continue
		default:
			i = scalarEnd(text, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return len(text)
}

// scalarEnd returns the offset behind the string, number, true, false or
// null at i.
func scalarEnd(text []byte, i int) int {
	if text[i] == '"' {
		return stringEnd(text, i)
	}
	for i < len(text) && text[i] != ',' && text[i] != ']' && text[i] != '}' {
		i++
	}
	return i
}

// stringEnd returns the offset behind the string at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			break
		}
		i += quote
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(text)
}

// appendText appends the text of a string or another scalar, in lower case.
func appendText(dst, value []byte) []byte { return appendFolded(dst, textOf(value)) }

// textOf returns the text of a scalar.
func textOf(value []byte) []byte {
	if value[0] == '"' {
		return decodedString(value)
	}
	return value
}

// decodedString returns the meaning of a string in quotes.
func decodedString(quoted []byte) []byte {
	raw := quoted[1:max(1, len(quoted)-1)]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return unescape(nil, raw)
}
