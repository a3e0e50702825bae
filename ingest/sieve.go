package ingest

import (
	"bytes"
	"unicode/utf8"
)

// A Sieve makes conditions for another store, such as those of SQL. Empty is
// a condition that holds for all entries.
type Sieve interface {
	All(conditions []string) string
	Either(conditions []string) string
	Levels(levels SeveritySet) string
	// Words holds for an entry that has all of them among the ASCII words of its text,
	// in lower case, and those of HiddenWords.
	Words(words []string) string
	// Contains holds for an entry whose text has a part in any case, or has escapes of Unicode,
	// or, where it may be foreign, characters beyond ASCII.
	Contains(part string, foreign bool) string
}

// Sift returns a condition that holds for all entries that match, and perhaps for others.
func (q Query) Sift(s Sieve) string {
	if q.root == nil {
		return ""
	}
	return sift(q.root, s)
}

func sift(c condition, s Sieve) string {
	switch c := c.(type) {
	case all:
		return s.All(siftAll(c, s))
	case either:
		return s.Either(siftAll(c, s))
	case levels:
		return s.Levels(SeveritySet(c))
	case phrase:
		return c.sift(s)
	case field:
		if words := sievedWords([]byte(c.value)); len(words) > 0 {
			return s.Words(words)
		}
		return c.needle.sift(s)
	}
	return ""
}

func siftAll(list []condition, s Sieve) (conditions []string) {
	for _, c := range list {
		conditions = append(conditions, sift(c, s))
	}
	return conditions
}

func (p phrase) sift(s Sieve) string {
	var words []string
	for _, word := range p {
		if word.whole() && len(word.text) <= maxSievedWord {
			words = append(words, word.text)
		}
	}
	if len(words) > 0 {
		return s.Words(words)
	}
	return p.needle().sift(s)
}

func (n needle) sift(s Sieve) string {
	if n.text == "" {
		return ""
	}
	return s.Contains(n.text, n.foreign)
}

// maxSievedWord is the longest word that is surely no beginning of a longer one.
const maxSievedWord = maxWordBytes - utf8.UTFMax

func sievedWords(text []byte) (words []string) {
	eachWord(text, func(word []byte) bool {
		if len(word) <= maxSievedWord {
			words = append(words, string(word))
		}
		return true
	})
	return words
}

// HiddenWords appends the words of an entry that are not among the ASCII words
// of its text, in lower case: because of escapes, or of characters beyond ASCII. There is a space
// between them. Mostly there are none.
func HiddenWords(dst, text []byte) []byte {
	if isASCII(text) && bytes.IndexByte(text, '\\') < 0 {
		return dst
	}
	seen := map[string]bool{} // bounded by the entry
	eachASCIIWord(text, func(word []byte) { seen[string(word)] = true })
	start := len(dst)
	eachWord(unescape(nil, text), func(word []byte) bool { // what is in strings is still between quotes
		if len(word) > maxSievedWord || seen[string(word)] {
			return true
		}
		seen[string(word)] = true
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = append(dst, word...)
		return true
	})
	return dst
}

// eachASCIIWord calls each with the words of a text in which all bytes beyond
// ASCII are letters, and no others are in lower case.
func eachASCIIWord(text []byte, each func(word []byte)) {
	var word []byte
	for _, c := range text {
		if letter := ascii[c]; letter != 0 {
			word = append(word, letter)
		} else if c >= utf8.RuneSelf {
			word = append(word, c)
		} else if len(word) > 0 {
			each(word)
			word = word[:0]
		}
	}
	if len(word) > 0 {
		each(word)
	}
}
