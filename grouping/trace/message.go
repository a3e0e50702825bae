package trace

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a message.
const (
	MaxWords = 16 // of a message that count beside a trace
	MaxAlone = 40 // of a message that count without a trace

	maxTokens = 200 // of a message that are read: many values side by side are one word
)

// A Message is the first line of an error's message as words, with "*" for each value: quoted text, numbers, ids,
// paths, addresses, what follows "=", and the words at whose place this project has had many others. It reuses its
// memory.
type Message struct {
	text  []byte // the words in lower case, each with a blank before it
	words []word
	known []int // ordinals of the learned values
	spare []byte
}

// word is where a word is in the text.
type word struct{ start, end int }

// Read reads at most so many words of a message.
func (m *Message) Read(message string, most int) {
	m.text, m.words, m.known = m.text[:0], m.words[:0], m.known[:0]
	s, last := FirstLine(message), ""
	for tokens := 0; s != "" && len(m.words) < most && tokens < maxTokens; tokens++ {
		token, rest, found := cutToken(s)
		start := len(m.text)
		if s = rest; token != "" {
			m.text = appendToken(m.text, token, last, found)
			last = token
		} else {
			m.text = append(m.text, Value...)
		}
		m.add(start)
	}
}

// Set makes a message of given words.
func (m *Message) Set(words ...string) {
	m.text, m.words, m.known = m.text[:0], m.words[:0], m.known[:0]
	for _, one := range words {
		if one != "" {
			start := len(m.text)
			m.text = append(append(m.text, ' '), one...)
			m.add(start)
		}
	}
}

// add adds what was appended to the text. Values side by side are one.
func (m *Message) add(start int) {
	if last := len(m.words) - 1; last >= 0 && isStar(m.word(last)) && string(m.text[start:]) == Value {
		m.text = m.text[:start]
	}
	if start < len(m.text) {
		m.words = append(m.words, word{start, len(m.text)})
	}
}

func (m *Message) word(i int) []byte { return m.text[m.words[i].start:m.words[i].end] }

// Learn makes values of words at whose place the project has had many others: where values holds the context, with an
// ordinal below the limit.
func (m *Message) Learn(family uint64, values map[uint64]int, limit int) {
	if len(values) == 0 {
		return
	}
	text, plain := m.spare[:0], m.text
	for i, w := range m.words {
		one, next := plain[w.start:w.end], []byte(nil)
		if i+1 < len(m.words) {
			next = plain[m.words[i+1].start:m.words[i+1].end]
		}
		if n := values[Context(family, text, next, len(m.words))]; n > 0 && n < limit && MayVary(one) {
			m.known = append(m.known, n)
			one = star
		}
		start := len(text)
		text = append(text, one...)
		m.words[i] = word{start, len(text)}
	}
	m.text, m.spare = text, plain
}

// MayVary reports whether a word may become a value: it is none yet, and no code, of which each has a digit.
func MayVary(word []byte) bool { return !isStar(word) && !slices.ContainsFunc(word, isDigit) }

// Known are the ordinals of the contexts by which Learn made values.
func (m *Message) Known() []int { return m.known }

// Context is the place of a word in the messages of a family: what is before it, the next word, and how many words the
// message has. It is an FNV-1a hash.
func Context(family uint64, before, next []byte, words int) uint64 {
	const prime = 1099511628211
	hash := (family ^ uint64(words)) * prime //nolint:gosec // at most MaxAlone
	for _, part := range [...][]byte{before, {0}, next} {
		for _, c := range part {
			hash = (hash ^ uint64(c)) * prime
		}
	}
	return hash
}

// Value is the word that stands for whatever varies.
const Value = " *"

var (
	star                = []byte(Value)
	valueEnds, wordEnds = marksOf(".,;:!?()[]{}<>|"), marksOf(".,;:!?()[]{}<>|-")
	tokenEnds, quotes   = marksOf(" \t\"`'"), marksOf("\"'`“")              // that may end a token; with which quoted text may begin
	stateClasses        = wordSet("08 21 22 23 25 28 40 42 53 54 55 57 58") // the classes of SQLSTATEs that are numbers
	codeLabels          = wordSet("E ORA PLS TNS SQL ERR TS CS")
	inClassName         = smallLetters | marksOf("A_$")
	valueMarks          = marksOf("0@\\") // in values only
)

func isStar(word []byte) bool { return string(word) == Value }

// Words are all words, values included; each with a blank before it.
func (m *Message) Words() (words [][]byte) {
	text := bytes.Clone(m.text)
	for _, w := range m.words {
		words = append(words, text[w.start:w.end])
	}
	return words
}

// AppendAll appends all words, values included.
func (m *Message) AppendAll(dst []byte) []byte { return append(dst, m.text...) }

// AppendWords appends at most so many words, without values.
func (m *Message) AppendWords(dst []byte, most int) []byte {
	for i := range m.words {
		if most == 0 {
			break
		}
		if !isStar(m.word(i)) {
			dst = append(dst, m.word(i)...)
			most--
		}
	}
	return dst
}

// cutToken takes the next blank-separated token off s, and tells what is in it. Quoted text is a value, and skipped.
func cutToken(s string) (token, rest string, found marks) {
	s = s[leadingSpace(s):]
	if quotes.has(s[0]) {
		if rest, quoted := cutQuoted(s); quoted {
			return "", rest, 0
		}
	}
	for i := range len(s) {
		kind := kinds[s[i]]
		if kind&tokenEnds != 0 && (s[i] != '\'' || !isAlpha(s[i-1]) && s[i-1] < utf8.RuneSelf) { // "can't"
			return s[:i], s[i:], found
		}
		found |= kind
	}
	return s, "", found
}

// cutQuoted takes quoted text off s. A quote that is never closed is skipped.
func cutQuoted(s string) (rest string, ok bool) {
	for _, pair := range [...][2]string{{"\"", "\""}, {"'", "'"}, {"`", "`"}, {"‘", "’"}, {"“", "”"}, {"«", "»"}} {
		if quoted, ok := strings.CutPrefix(s, pair[0]); ok {
			if _, rest, closed := strings.Cut(quoted, pair[1]); closed {
				return rest, true
			}
			return quoted, true
		}
	}
	return s, false
}

// appendToken appends a token's word, or that it is a value. Of "name=value", "name:value" and "name[value]" the name
// stays. The last token may announce a code.
func appendToken(dst []byte, token, last string, found marks) []byte {
	for _, between := range [...]string{"=", ":", "["} {
		if !found.has(between[0]) {
			continue
		}
		name, rest, _ := strings.Cut(token, between)
		if name == "" || rest == "" || isValue(name, marksOf(name)) || between != "=" && (!isValue(rest, marksOf(rest)) || rest[0] == '/') {
			continue
		}
		dst = append(appendLower(append(dst, ' '), name), between...)
		if code := valueEnds.trim(rest); announcesCode(name) && (isCodeNumber(rest) || len(code) > 3 && isUpperWord(code)) { // "ECONNREFUSED"
			return append(dst, code...)
		}
		return append(dst, '*')
	}
	word := wordEnds.trim(token)
	switch {
	case found.has('0') && (isErrorCode(token) || isCodeNumber(token) && announcesCode(last)):
		return append(append(dst, ' '), valueEnds.trim(token)...)
	case isValue(token, found):
		return append(dst, Value...)
	case word == "":
		return dst
	}
	return appendLower(append(dst, ' '), word)
}

func announcesCode(word string) bool {
	return isOneOf(wordEnds.trim(word), "status", "code", "statuscode", "errno", "error", "exit", "exited", "http", "http/1.1", "http/2",
		"signal", "sqlstate", "returned", "responded", "answered")
}

func isOneOf(s string, names ...string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return strings.EqualFold(s, one) })
}

// Bounds of codes.
const (
	maxCode    = 4  // digits: MySQL has 1205
	stateCode  = 5  // characters of an SQLSTATE: "42P01", "23505"
	statusCode = 10 // of "0xC0000005", and of that as a decimal number, -1073741819
)

// isCodeNumber recognizes what may follow such a word: "404", "#418", "-11", "42P01", "0xC0000005".
func isCodeNumber(token string) bool {
	code := strings.TrimPrefix(valueEnds.trim(token), "#")
	digits := strings.TrimPrefix(code, "-")
	switch {
	case !hasDigit(digits) || len(digits) > statusCode:
		return false
	case allDigits(digits):
		return len(digits) <= maxCode || strings.HasPrefix(code, "-107374") || len(digits) == stateCode && stateClasses[digits[:2]]
	}
	return isSystemStatus(digits) || len(digits) == stateCode && isUpperWord(decimals.trim(digits))
}

// isErrorCode recognizes codes that need no word before them: "ORA-00942", "E11000", "0xC0000005" of Windows.
func isErrorCode(token string) bool {
	word := valueEnds.trim(token)
	label := decimals.trimRight(word)
	return isSystemStatus(word) || len(label) < len(word) && len(word) <= statusCode && codeLabels[strings.TrimRight(label, "-_")]
}

// isSystemStatus recognizes NTSTATUS and HRESULT: eight digits, of which the first says that something failed.
func isSystemStatus(s string) bool {
	digits, ok := strings.CutPrefix(s, "0x")
	return ok && len(digits) == 8 && strings.IndexByte("8cCdDeE", digits[0]) >= 0 && isHexTail(digits)
}

func appendLower(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, s...)
	for i := start; i < len(dst); i++ {
		if isUpper(dst[i]) {
			dst[i] |= 0x20
		}
	}
	return dst
}

// isClassName recognizes "FooBar", "pkg.Foo" and "java.lang.String".
func isClassName(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	name := s[dot+1:]
	if name == "" || !isUpper(name[0]) || marksOf(name)&^inClassName != 0 {
		return false
	}
	rises := dot > 0
	for i := 1; i < len(name) && !rises; i++ {
		rises = isRise(name, i)
	}
	return rises
}

// isValue recognizes numbers, ids, hashes, paths, URLs, mail addresses, host names and symbols (":cart"). found is what
// is in the token.
func isValue(token string, found marks) bool {
	switch {
	case found&valueMarks != 0, len(token) > 1 && token[0] == ':' && isAlpha(token[1]):
		return true
	case !found.has('/') && !found.has('.'):
		return false
	}
	token = valueEnds.trim(token)
	if found.has('/') && (strings.HasPrefix(strings.TrimPrefix(token, "~"), "/") || strings.Count(token, "/") > 1) {
		return true
	}
	dot := strings.IndexByte(token, '.')
	return dot > 0 && !isClassName(token) && !strings.HasSuffix(token, "()")
}
