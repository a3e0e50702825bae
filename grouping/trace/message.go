package trace

import (
	"bytes"
	"iter"
	"slices"
	"strings"
)

// Messages are compared by their template: the first line without
// visible values. Beside a stack trace a few words suffice,
// preferably those that programmers use, so that a user's name
// does not split a group. A message with few of these is compared
// by all its words. Without a trace, the message is all there is.

// MaxWords is how many words of a message count beside a trace.
const MaxWords = 16

const maxWord = 24 // bytes of the longest word of the vocabulary

// Words holds a message's words that count. It reuses its memory.
type Words struct {
	text  []byte
	words []word
	spare []byte // a word in lower case
}

type word struct {
	start, end int // in text, with a blank before it
	technical  bool
}

// Read reads the words of a message.
func (w *Words) Read(message string) {
	w.text, w.words = w.text[:0], w.words[:0]
	s, technical := FirstLine(message), 0
	for s != "" && len(w.words) < MaxWords {
		var token string
		before := w.text
		token, s = cutToken(s)
		start := len(w.text)
		w.text = appendTemplateToken(w.text, token)
		if n := len(w.text); n == start || w.text[n-1] == '*' {
			w.text = w.text[:start]
			continue
		}
		known := w.isTechnical(wordEnds.trim(token)) || isErrorNumber(before, token)
		if w.words = append(w.words, word{start, len(w.text), known}); known {
			technical++
		}
	}
	if 2*technical >= len(w.words) {
		w.words = slices.DeleteFunc(w.words, func(one word) bool { return !one.technical })
	}
}

// Set makes the list of given words.
func (w *Words) Set(words ...string) {
	w.text, w.words = w.text[:0], w.words[:0]
	for _, one := range words {
		if one != "" {
			start := len(w.text)
			w.text = append(append(w.text, ' '), one...)
			w.words = append(w.words, word{start, len(w.text), true})
		}
	}
}

// isTechnical reports whether a programmer chose the word: it is in
// the vocabulary, a constant ("NOT_FOUND") or a class ("FooBar").
func (w *Words) isTechnical(s string) bool {
	if len(s) <= maxWord {
		w.spare = appendLower(w.spare[:0], s)
		if vocabulary[string(w.spare)] {
			return true
		}
	}
	return isConstant(s) || isClassName(s)
}

// Punctuation around words: a value may end
// in "-", a word of the template in "'".
var (
	valueEnds    = bytesOf(".,;:!?()[]{}<>|")
	templateEnds = bytesOf(".,;:!?()[]{}<>|-")
	wordEnds     = bytesOf(".,;:!?()[]{}<>|-'")
)

// Len is how many words count.
func (w *Words) Len() int { return len(w.words) }

// All are the words, each with a blank before it.
func (w *Words) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, one := range w.words {
			if !yield(w.text[one.start:one.end]) {
				return
			}
		}
	}
}

// Append appends at most so many words.
func (w *Words) Append(dst []byte, most int) []byte {
	for _, one := range w.words[:min(most, len(w.words))] {
		dst = append(dst, w.text[one.start:one.end]...)
	}
	return dst
}

// cutToken takes the next blank-separated token
// off s. Quoted text is a value, and skipped.
func cutToken(s string) (token, rest string) {
	s = s[leadingSpace(s):]
	if s == "" {
		return "", ""
	}
	if strings.IndexByte("\"'`", s[0]) >= 0 {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return "", s[end+2:]
		}
		return "", s[1:]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			return s[:i], s[i+1:]
		case c == '"' || c == '`' || c == '\'' && !isAlpha(s[i-1]):
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isUpper(c) {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

func isConstant(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isUpper(s[i]) && s[i] != '_' {
			return false
		}
	}
	return len(s) > 3 && s[0] != '_'
}

// isClassName recognizes "FooBar" and "pkg.FooBar": the
// last part begins in upper case and has a second capital.
func isClassName(s string) bool {
	name := s[strings.LastIndexByte(s, '.')+1:]
	if name == "" || !isUpper(name[0]) {
		return false
	}
	rises := false
	for i := 1; i < len(name); i++ {
		if !isAlpha(name[i]) && name[i] != '_' && name[i] != '$' {
			return false
		}
		rises = rises || isUpper(name[i]) && isLower(name[i-1])
	}
	return rises
}

// AppendTemplate appends at most so many words of a
// message's first line. "*" replaces visible values: quoted
// text, numbers, ids, paths, addresses, what follows "=".
func AppendTemplate(dst []byte, message string, words int) []byte {
	s := FirstLine(message)
	for n := 0; s != "" && n < words; n++ {
		before := s
		var token string
		token, s = cutToken(s)
		if token == "" {
			if len(s) < len(before) && leadingSpace(before) < len(before) {
				dst = appendStar(dst)
			}
			continue
		}
		dst = appendTemplateToken(dst, token)
	}
	return dst
}

func appendTemplateToken(dst []byte, token string) []byte {
	if name, value, ok := strings.Cut(token, "="); ok && name != "" && value != "" && !isValue(name) {
		return append(appendLower(append(dst, ' '), name), "=*"...)
	}
	if name, value, ok := strings.Cut(token, ":"); ok && name != "" && value != "" && !isValue(name) && isValue(value) {
		return append(appendLower(append(dst, ' '), name), ":*"...)
	}
	word := templateEnds.trim(token)
	if isErrorNumber(dst, token) {
		return append(append(dst, ' '), word...)
	}
	if isValue(token) {
		return appendStar(dst)
	}
	if word == "" {
		return dst
	}
	return appendLower(append(dst, ' '), word)
}

// isErrorNumber recognizes the number of an error: "error #418".
func isErrorNumber(before []byte, token string) bool {
	return len(token) > 1 && token[0] == '#' && len(token) < minInnerNumber+2 && allDigits(valueEnds.trim(token[1:])) && bytes.HasSuffix(before, []byte(" error"))
}

// appendStar marks a value. Values side by side share one mark.
func appendStar(dst []byte) []byte {
	if n := len(dst); n > 1 && dst[n-1] == '*' && dst[n-2] == ' ' {
		return dst
	}
	return append(dst, " *"...)
}

// isValue recognizes numbers, ids, hashes,
// paths, URLs, mail addresses and host names.
func isValue(token string) bool {
	token = valueEnds.trim(token)
	switch {
	case hasDigit(token), strings.IndexByte(token, '@') >= 0, strings.IndexByte(token, '\\') >= 0:
		return true
	case strings.HasPrefix(token, "/"), strings.HasPrefix(token, "./"), strings.HasPrefix(token, "~/"), strings.Contains(token, "://"):
		return true
	case strings.Count(token, "/") > 1:
		return true
	}
	dot := strings.IndexByte(token, '.')
	return dot > 0 && !isClassName(token) && !strings.HasSuffix(token, "()")
}
