package ingest

import (
	"unicode"
	"unicode/utf8"
)

// MaxWords is how many words one search may name.
const MaxWords = 32

// maxWordBytes is how much of a word counts.
const maxWordBytes = 64

// unspaced are the scripts without spaces between words, where
// each character counts as a word.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// eachWord calls each with the words of a text, in lower case, until
// it returns false. A word is a longest run of letters, digits and
// marks. It is valid until each returns.
func eachWord(text []byte, each func(word []byte) bool) {
	var buffer [maxWordBytes]byte
	word := buffer[:0]
	for len(text) > 0 {
		r, size := rune(text[0]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text)
		}
		text = text[size:]
		kind := kindOf(r)
		if kind != partOfWord && len(word) > 0 {
			if !each(word) {
				return
			}
			word = buffer[:0]
		}
		if kind == separator {
			continue
		}
		if lower := unicode.ToLower(r); len(word)+utf8.RuneLen(lower) <= maxWordBytes {
			word = utf8.AppendRune(word, lower)
		}
		if kind == wholeWord {
			if !each(word) {
				return
			}
			word = buffer[:0]
		}
	}
	if len(word) > 0 {
		each(word)
	}
}

type kind uint8

const (
	separator kind = iota
	partOfWord
	wholeWord
)

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' {
			return partOfWord
		}
		return separator
	case unicode.In(r, unspaced...):
		return wholeWord
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return partOfWord
	}
	return separator
}

// Words is a set of whole words that a message must hold, in any case and order.
type Words []string

// ParseWords parses the words of a query, at most MaxWords different ones.
func ParseWords(query string) Words {
	var words Words
	seen := map[string]bool{}
	eachWord([]byte(query), func(word []byte) bool {
		if !seen[string(word)] {
			seen[string(word)] = true
			words = append(words, string(word))
		}
		return len(words) < MaxWords
	})
	return words
}

// In reports whether the message has every word.
func (w Words) In(message []byte) bool {
	if len(w) == 0 {
		return true
	}
	missing := uint32(1)<<len(w) - 1
	eachWord(message, func(word []byte) bool {
		for i := range w {
			if string(word) == w[i] {
				missing &^= 1 << i
			}
		}
		return missing != 0
	})
	return missing == 0
}
