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
	switch object[0] {
	case '[':
		return eachElement(object, func(element []byte) bool { return p.find(element, each) })
	case '{':
		return eachMember(object, func(name, value []byte) bool {
			rest, found := strings.CutPrefix(string(p), string(decodedString(name)))
			switch {
			case !found:
				return false
			case rest == "":
				return visit(value, each)
			}
			return rest[0] == '.' && jsonPath(rest[1:]).find(value, each)
		})
	}
	return false
}

func visit(value []byte, each func(value []byte) bool) bool {
	return each(value) || value[0] == '[' && eachElement(value, func(element []byte) bool { return visit(element, each) })
}

// eachMember calls each with the members of an object, names in quotes,
// until it returns true.
func eachMember(object []byte, each func(name, value []byte) bool) bool {
	for i := 1; object[i] != '}'; {
		if object[i] == ',' {
			i++
		}
		colon := valueEnd(object, i)
		end := valueEnd(object, colon+1)
		if each(object[i:colon], object[colon+1:end]) {
			return true
		}
		i = end
	}
	return false
}

// eachElement calls each with the elements of an array until it returns true.
func eachElement(array []byte, each func(element []byte) bool) bool {
	for i := 1; array[i] != ']'; {
		if array[i] == ',' {
			i++
		}
		end := valueEnd(array, i)
		if each(array[i:end]) {
			return true
		}
		i = end
	}
	return false
}

// valueEnd returns the offset behind the value at i.
func valueEnd(text []byte, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
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
			i += bytes.IndexAny(text[i:], ",]}")
		}
		if depth == 0 {
			return i
		}
	}
}

// stringEnd returns the offset behind the string at i.
func stringEnd(text []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(text[i:], '"')
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// decodedString returns the meaning of a string in quotes.
func decodedString(quoted []byte) []byte {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return unescape(nil, raw)
}
