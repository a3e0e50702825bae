package trace

import "strings"

// appendFileName appends the last element of a path or URL without build numbers and hashes: "main.chunk.js" of
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
		if !isHashPart(part) {
			if len(dst) > start {
				dst = append(dst, name[begin-1])
			}
			dst = append(dst, part...)
		}
		begin = end + 1
	}
	return dst
}

// cutChunkHash cuts the hash out of "cart_tsx_3f2a1b9c._.js", a script of Turbopack.
func cutChunkHash(name string) (stem, extension string, ok bool) {
	stem, extension, ok = strings.Cut(name, "._.")
	stem, hash, named := cutLast(stem, "_")
	return strings.TrimRight(stem, "_"), extension, ok && named && isHexWord(hash, minPlainHexID)
}

func isNameBreak(c byte) bool { return c == '.' || c == '-' || c == '~' }

// isHashPart recognizes hashes of bundlers, build numbers and parts of versions.
func isHashPart(s string) bool {
	return allDigits(s) || isVersion(s) || isHexWord(s, minHexID) || len(s) >= minPlainHexID && len(s) <= 32 && isMixed(s, "")
}

// isVersion recognizes "v2".
func isVersion(s string) bool { return len(s) > 1 && s[0] == 'v' && allDigits(s[1:]) }

// isMixed reports whether letters and digits, beside what joins them, look random: digits between letters, capitals and
// digits alone, or case that changes often.
func isMixed(s, joins string) bool {
	digits, upper, rises, inner := 0, 0, 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case isUpper(c):
			upper++
			if i > 0 && isLower(s[i-1]) {
				rises++
			}
		case !isLower(c) && strings.IndexByte(joins, c) < 0:
			return false
		}
		inner = inner || digits > 0 && isAlpha(s[i])
	}
	return inner || upper+digits == len(s) && (digits > 0 || len(s) == chunkHash) || len(s) == chunkHash && (rises >= 2 || rises*digits > 0 && joins != "")
}

// hasStem reports whether a file name has more than an extension.
func hasStem(name []byte) bool { return len(name) > 0 && name[0] != '.' }

// Location names a frame by function and file.
func Location(f *Frame) string {
	file := string(appendFileName(nil, withoutQuery(f.File)))
	if f.Function == "" || file == "" {
		return f.Function + file
	}
	return f.Function + " (" + file + ")"
}

// fileStem is the name of a call's file without its extension.
func fileStem(f *Frame, extension string) string {
	return strings.TrimSuffix(baseName(f.File), extension)
}

// appendCall names a function by what it is in.
func appendCall(dst []byte, in, function string) []byte {
	return append(append(append(dst, in...), ':'), function...)
}
