package trace

// Bundlers name files by their content: "index-BqR3_x9k.js", "index.3f2a1b9c.js", "qk7dpx.js". Alphabets and lengths
// differ, so of a remote script's name only words are kept: letters in an order that language has, each word in one
// case.

const (
	minBuildHash = 6 // characters of the shortest hash
	minWordTest  = 3 // letters of the shortest word that is examined
)

// withoutBuildHash cuts the hash off a file's stem; all of it where nothing else is left.
func withoutBuildHash(stem string) string {
	if rest := len(stem) - chunkHash; rest == 0 || rest > 0 && buildBreaks.has(stem[rest-1]) {
		if isBuildHash(stem[rest:]) { // it may have "-" and "_" in it
			return stem[:max(0, rest-1)]
		}
	}
	if last := buildBreaks.afterLast(stem); len(last) >= minBuildHash && isBuildHash(last) {
		return stem[:max(0, len(stem)-len(last)-1)]
	}
	return stem
}

var buildBreaks = marksOf(".-~_")

// isBuildHash reports whether a part of s is no word.
func isBuildHash(s string) bool {
	for s != "" {
		end := 0
		for end < len(s) && s[end] != '-' && s[end] != '_' {
			end++
		}
		if end > 0 && !isWords(s[:end]) {
			return true
		}
		s = s[min(end+1, len(s)):]
	}
	return false
}

// isWords reports whether s is words with a number of at most maxCounter digits behind them: "cartPage2".
func isWords(s string) bool {
	letters := decimals.trimRight(s)
	if len(letters) < minWordTest || len(s)-len(letters) > maxCounter {
		return letters == s && !hasUpper(s) && len(letters) < minWordTest
	}
	for i := range len(letters) {
		if !isAlpha(letters[i]) || i > 1 && isUpper(letters[i]) && isUpper(letters[i-1]) != isUpper(letters[i-2]) {
			return false
		}
	}
	return isLikeWords(letters)
}

// maxCounter is how many digits a word may end in.
const maxCounter = 2

// isLikeWords reports whether most trigrams of s are those of known words. Groups that span a change of case don't
// count.
func isLikeWords(s string) bool {
	known, groups := 0, 0
	for i := range len(s) - 2 {
		if isRise(s, i+1) || isRise(s, i+2) {
			continue
		}
		if groups++; trigrams.has(s[i], s[i+1], s[i+2]) {
			known++
		}
	}
	return 2*known > groups
}

// isRise reports whether upper case follows lower at i > 0.
func isRise(s string, i int) bool { return isUpper(s[i]) && isLower(s[i-1]) }

// letterGroups is a set of trigrams, whatever their case.
type letterGroups [26][26][26]bool

func (g *letterGroups) has(a, b, c byte) bool { return g[(a|0x20)-'a'][(b|0x20)-'a'][(c|0x20)-'a'] }

var trigrams = func() *letterGroups {
	var g letterGroups
	for _, words := range [...]map[string]bool{vocabulary, pageWords} {
		for one := range words {
			for i := range max(0, len(one)-2) {
				g[one[i]-'a'][one[i+1]-'a'][one[i+2]-'a'] = true
			}
		}
	}
	return &g
}()
