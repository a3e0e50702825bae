package trace

import "strings"

// appendFileName appends the last element of a path or URL without build
// numbers and hashes: "main.chunk.js" of
// "https://cdn/x/main.3f2a1b9c.chunk.js", "index.js" of "index-DkYxQw9z.js".
func appendFileName(dst []byte, path string) []byte {
	name := baseName(path)
	start := len(dst)
	for begin := 0; begin < len(name); {
		end := begin
		for end < len(name) && !isNameBreak(name[end]) {
			end++
		}
		part := name[begin:end]
		switch {
		case isHashPart(part):
		case len(dst) == start:
			dst = append(dst, part...)
		default:
			dst = append(append(dst, breakBefore(name, begin)), part...)
		}
		begin = end + 1
	}
	return dst
}

// cutChunkHash cuts the hash out of
// "cart_tsx_3f2a1b9c._.js", a script of Turbopack.
func cutChunkHash(name string) (stem, extension string, ok bool) {
	stem, extension, ok = strings.Cut(name, "._.")
	i := strings.LastIndexByte(stem, '_')
	if !ok || !isHexWord(stem[i+1:], minPlainHexID) {
		return "", "", false
	}
	return strings.TrimRight(stem[:max(i, 0)], "_"), extension, true
}

func isNameBreak(c byte) bool { return c == '.' || c == '-' || c == '~' }

func breakBefore(name string, i int) byte {
	if i == 0 {
		return '.'
	}
	return name[i-1]
}

// isHashPart recognizes hashes of bundlers,
// build numbers and parts of versions.
func isHashPart(s string) bool {
	switch {
	case allDigits(s), isVersion(s):
		return true
	case isHexWord(s, 6):
		return true
	case len(s) >= 8 && len(s) <= 32 && isMixed(s):
		return true
	}
	return false
}

// isVersion recognizes "v2".
func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && allDigits(s[1:])
}

// isMixed reports whether s looks random: digits
// between letters, or case that changes often.
func isMixed(s string) bool {
	digits, upper, rises := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case isUpper(c):
			upper++
			if i > 0 && isLower(s[i-1]) {
				rises++
			}
		case !isLower(c):
			return false
		}
	}
	if upper == len(s) {
		return len(s) == 8
	}
	inner := digits > 0 && !allDigits(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	return inner || upper+digits == len(s) || len(s) == 8 && rises >= 2
}

// hasStem reports whether a file name has more than an extension.
func hasStem(name []byte) bool { return len(name) > 0 && name[0] != '.' }

// Location names a frame by function and file.
func Location(f *Frame) string {
	file := string(appendFileName(nil, withoutQuery(f.File)))
	switch {
	case f.Function == "":
		return file
	case file == "":
		return f.Function
	}
	return f.Function + " (" + file + ")"
}
