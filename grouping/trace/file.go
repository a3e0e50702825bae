package trace

import "strings"

// appendFileName appends the last element of a path or URL without build numbers and hashes: "main.chunk.js" of
// "https://cdn/x/main.3f2a1b9c.chunk.js".
func appendFileName(dst []byte, path string) []byte {
	name := baseName(path)
	start := len(dst)
	for begin := 0; begin < len(name); {
		end := begin
		for end < len(name) && !nameBreaks.has(name[end]) {
			end++
		}
		part := name[begin:end] // unless it is a hash, a build number or part of a version
		if !allDigits(part) && !isVersion(part) && !isHexWord(part, minHexID) {
			if len(dst) > start {
				dst = append(dst, name[begin-1])
			}
			dst = append(dst, part...)
		}
		begin = end + 1
	}
	return dst
}

var nameBreaks, buildBreaks = marksOf(".-~"), marksOf(".-~_")

// isVersion recognizes "v2".
func isVersion(s string) bool { return len(s) > 1 && s[0] == 'v' && allDigits(s[1:]) }

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

// Bundlers name files by their content: "index-BqR3_x9k.js", "index.3f2a1b9c.js", "qk7dpx.js". Alphabets and lengths
// differ, so of a remote script's name only words are kept: letters in an order that language has, each word in one
// case.

const (
	minBuildHash = 6 // characters of the shortest hash
	minWordTest  = 3 // letters of the shortest word that is examined
	maxCounter   = 2 // digits that a word may end in
	chunkHash    = 8 // characters of the hash that Vite, Rollup and esbuild put before the extension
)

// withoutBuildHash cuts the hash off a file's stem; all of it where nothing else is left.
func withoutBuildHash(stem string) string {
	rest := len(stem) - chunkHash
	if (rest == 0 || rest > 0 && buildBreaks.has(stem[rest-1])) && isBuildHash(stem[rest:]) { // it may have "-" and "_" in it
		return stem[:max(0, rest-1)]
	}
	if last := buildBreaks.afterLast(stem); len(last) >= minBuildHash && isBuildHash(last) {
		return stem[:max(0, len(stem)-len(last)-1)]
	}
	return stem
}

// isBuildHash reports whether a part of s is no word.
func isBuildHash(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '-' || r == '_' }) {
		if !isWords(part) {
			return true
		}
	}
	return false
}

// isWords reports whether s is words with a number of at most maxCounter digits behind them: "cartPage2". Most of their
// trigrams are those of known words.
func isWords(s string) bool {
	letters := decimals.trimRight(s)
	if len(letters) < minWordTest || len(s)-len(letters) > maxCounter {
		return letters == s && !hasUpper(s) && len(letters) < minWordTest
	}
	known, groups := 0, 0 // those of three letters that span a change of case don't count
	for i := range len(letters) {
		if !isAlpha(letters[i]) || i > 1 && isUpper(letters[i]) && isUpper(letters[i-1]) != isUpper(letters[i-2]) {
			return false
		}
		if i > 1 && !isRise(letters, i-1) && !isRise(letters, i) {
			groups++
			if trigrams[group(letters, i-2)] {
				known++
			}
		}
	}
	return 2*known > groups
}

// isRise reports whether upper case follows lower at i > 0.
func isRise(s string, i int) bool { return isUpper(s[i]) && isLower(s[i-1]) }

// group is the trigram at i of s, whatever its case.
func group(s string, i int) [3]byte { return [3]byte{s[i] | 0x20, s[i+1] | 0x20, s[i+2] | 0x20} }

// trigrams are those of the words by which errors are read.
var trigrams = func() map[[3]byte]bool {
	all := map[[3]byte]bool{} // bounded by the words
	for _, words := range []map[string]bool{
		pageWords, faults, memoryFaults, placedWords, goStandard, rustCrates, dartLibraries, beamLibraries, nativeReporters,
	} {
		for one := range words {
			for i := range max(0, len(one)-2) {
				if marksOf(one[i:i+3])&^letters == 0 && !isRise(one, i+1) && !isRise(one, i+2) {
					all[group(one, i)] = true
				}
			}
		}
	}
	return all
}()
