package ingest

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
)

// passwordPattern also stands for values of fields with a secret's name.
const passwordPattern = "password"

// secrets are the named patterns of redactions. Each finder reads a text once,
// and looks back and ahead a bounded way.
var secrets = map[string][]redactor{ // bounded by the patterns
	"email":         {{find: findEmail, needs: hasAt}},
	"ip":            {{find: findAddress, needs: hasDigit | hasDot}},
	"card-number":   {{find: findCard, needs: hasDigit}},
	"token":         {{find: findJWT, needs: hasCapitalJ | hasDot}, {find: findBearer, needs: hasSpace}},
	"access-key":    {{find: findAccessKey, needs: hasKeyPart}},
	passwordPattern: {{find: findPassword, needs: hasSign}},
}

// What a text has, so that most are not looked at for most patterns.
const (
	hasAt uint8 = 1 << iota
	hasDigit
	hasDot // or colon
	hasSign
	hasCapitalJ
	hasSpace
	hasKeyPart
)

var hints = func() (of [256]uint8) {
	for c := '0'; c <= '9'; c++ {
		of[c] = hasDigit
	}
	of['@'], of['.'], of[':'], of['='], of['J'], of[' '], of['\t'] = hasAt, hasDot, hasDot|hasSign, hasSign, hasCapitalJ, hasSpace, hasSpace
	of['_'], of['-'], of['A'] = hasKeyPart, hasKeyPart, hasKeyPart
	return of
}()

func hintsIn(text []byte) (has uint8) {
	for _, c := range text {
		has |= hints[c]
	}
	return has
}

// RedactionPatterns returns the names of all named patterns.
func RedactionPatterns() []string { return slices.Sorted(maps.Keys(secrets)) }

// A byteSet has some of the bytes.
type byteSet [256]bool

func bytesOf(ranges string) (set byteSet) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := int(ranges[i]); c <= int(ranges[i+1]); c++ {
			set[c] = true
		}
	}
	return set
}

var (
	ofDigits    = bytesOf("09")
	ofWords     = bytesOf("09azAZ")
	ofLocalPart = bytesOf("09azAZ..__%%++--''\x80\xff")
	ofDomain    = bytesOf("09azAZ--..\x80\xff")
	ofAddress   = bytesOf("09afAF::..")
	ofToken     = bytesOf("09azAZ--..__~~++//==")
	ofSegment   = bytesOf("09azAZ--__")
	ofName      = bytesOf("09azAZ--..__")
	ofKey       = bytesOf("09azAZ__--")
	ofBlanks    = bytesOf("  \t\t")
	ofSlashes   = bytesOf(`\\`)
	ofNameEnds  = bytesOf("  \t\t\"\"''\\\\") // between a name and its sign
	ofSigns     = bytesOf("==::>>  \t\r")     // between a name and its value
)

// run returns the end of the run of bytes of a set from i on.
func (set *byteSet) run(text []byte, i int) int {
	for i < len(text) && set[text[i]] {
		i++
	}
	return i
}

// back returns the start of the run that ends at i, at most so far back.
func (set *byteSet) back(text []byte, i, least, most int) int {
	for start := i; i > least && start-i < most && set[text[i-1]]; {
		i--
	}
	return i
}

const (
	maxLocalPart = 64
	maxDomain    = 253
)

func findEmail(text []byte, from int) (int, int) {
	for i := from; ; {
		at := bytes.IndexByte(text[i:], '@')
		if at < 0 {
			return -1, -1
		}
		at += i
		i = at + 1
		start := ofLocalPart.back(text, at, from, maxLocalPart)
		end := min(ofDomain.run(text, at+1), at+1+maxDomain)
		for end > at+1 && (text[end-1] == '.' || text[end-1] == '-') {
			end--
		}
		dot := bytes.LastIndexByte(text[at+1:end], '.')
		if start < at && dot > 0 && end-(at+1+dot) > 2 && !ofDigits[text[at+dot+2]] {
			return start, end
		}
	}
}

// longest address of IPv6, with one of IPv4 at its end.
const maxAddress = 45

func findAddress(text []byte, from int) (int, int) {
	for i := from; i < len(text); {
		if !ofAddress[text[i]] {
			i++
			continue
		}
		end := ofAddress.run(text, i)
		if end == len(text) || !ofName[text[end]] || text[end] == '-' {
			isRange := i == from+1 && text[from] == '-'
			if start, length := addressBehind(text[i:end], i > 0 && ofName[text[i-1]] && !isRange); length > 0 {
				return i + start, i + start + length
			}
		}
		i = end
	}
	return -1, -1
}

// addressBehind finds the address in a run of its characters, of which the
// first may belong to a name and its colon.
func addressBehind(run []byte, named bool) (start, length int) {
	if !named {
		if start, length = addressIn(run); length > 0 {
			return start, length
		}
	}
	behind := bytes.IndexByte(run, ':') + 1
	if behind == 0 {
		return 0, 0
	}
	start, length = addressIn(run[behind:])
	return behind + start, length
}

// addressIn finds the address in a run of its characters: a port, or the end of
// a sentence, may stand behind it.
func addressIn(run []byte) (start, length int) {
	inside := bytes.TrimLeft(bytes.TrimRight(run, "."), ".")
	start = len(run) - len(bytes.TrimLeft(run, "."))
	if bytes.HasSuffix(inside, []byte(":")) && !bytes.HasSuffix(inside, []byte("::")) {
		inside = inside[:len(inside)-1]
	}
	if colon := bytes.IndexByte(inside, ':'); colon > 0 && bytes.Count(inside, []byte(".")) == 3 && isAddress(inside[:colon]) {
		return start, colon
	}
	if isAddress(inside) {
		return start, len(inside)
	}
	return 0, 0
}

// isAddress reports whether a text is an IP address. Names such as a::b, times
// and numbers of versions with three dots are no addresses, or might be.
func isAddress(text []byte) bool {
	dots, colons := bytes.Count(text, []byte(".")), bytes.Count(text, []byte(":"))
	switch {
	case len(text) > maxAddress:
		return false
	case colons == 0 && dots != 3, colons == 1:
		return false
	case colons > 1 && !bytes.Contains(text, []byte("::")) && colons != 7 && (colons != 6 || dots != 3):
		return false
	case !bytes.ContainsAny(text, "0123456789"):
		return false
	}
	_, err := netip.ParseAddr(string(text))
	return err == nil
}

// Lengths of numbers of cards.
const (
	minCard = 13
	maxCard = 19
)

func findCard(text []byte, from int) (int, int) {
	for i := from; i < len(text); {
		switch {
		case !ofDigits[text[i]]:
			i++
		case i > 0 && (ofWords[text[i-1]] || text[i-1] == '.' || text[i-1] == '_'):
			i = ofWords.run(text, i+1)
		default:
			if end := cardEnd(text, i); end > 0 {
				return i, end
			}
			i = ofDigits.run(text, i)
		}
	}
	return -1, -1
}

// cardEnd returns the end of the longest number of a card that begins at i; 0:
// none does. Between groups of digits there may be one space or hyphen. No
// issuer's number begins with 1, as times do in this century.
func cardEnd(text []byte, i int) (end int) {
	if text[i] < '2' || text[i] > '6' {
		return 0
	}
	var number [maxCard]byte
	for n := 0; i < len(text) && n < maxCard; {
		number[n] = text[i] - '0'
		n, i = n+1, i+1
		if i < len(text) && ofDigits[text[i]] {
			continue
		}
		if n >= minCard && (i == len(text) || !ofWords[text[i]] && text[i] != '_') && luhn(number[:n]) {
			end = i
		}
		if i+1 < len(text) && (text[i] == ' ' || text[i] == '-') && ofDigits[text[i+1]] {
			i++
			continue
		}
		break
	}
	return end
}

// luhn checks the last digit.
func luhn(number []byte) bool {
	sum := 0
	for i, digit := range number {
		if d := int(digit); (len(number)-i)%2 == 0 {
			sum += d/5 + d*2%10
		} else {
			sum += d
		}
	}
	return sum%10 == 0
}

const minToken = 8

// findJWT finds JSON Web Tokens.
func findJWT(text []byte, from int) (int, int) {
	for i := from; ; {
		at := bytes.Index(text[i:], []byte("eyJ"))
		if at < 0 {
			return -1, -1
		}
		start := i + at
		end := ofSegment.run(text, start)
		if dot := end; dot-start >= minToken && dot+1 < len(text) && text[dot] == '.' {
			if end = ofSegment.run(text, dot+1); end > dot+minToken && (start == 0 || !ofWords[text[start-1]]) {
				if end < len(text) && text[end] == '.' {
					end = ofSegment.run(text, end+1)
				}
				return start, end
			}
		}
		i = end
	}
}

// findBearer finds what follows the word bearer.
func findBearer(text []byte, from int) (int, int) {
	for i := from; ; {
		space := bytes.IndexAny(text[i:], " \t")
		if space < 0 {
			return -1, -1
		}
		space += i
		i = ofBlanks.run(text, space)
		if word := len("bearer"); space < word || !bytes.EqualFold(text[space-word:space], []byte("bearer")) {
			continue
		}
		if end := ofToken.run(text, i); end-i >= minToken && bytes.ContainsAny(text[i:end], "0123456789-_~+/=.") {
			return i, end
		}
	}
}

// An accessKey is how keys of a well-known service begin, and how many
// characters follow at least.
type accessKey struct {
	prefix string
	least  int
}

var accessKeys = []accessKey{
	{"AKIA", 16}, {"ASIA", 16}, {"AIza", 35}, {"ghp_", 36}, {"gho_", 36}, {"ghu_", 36}, {"ghs_", 36}, {"ghr_", 36}, {"github_pat_", 22}, {"glpat-", 20},
	{"sk_live_", 24}, {"sk_test_", 24}, {"rk_live_", 24}, {"rk_test_", 24}, {"xoxb-", 20}, {"xoxp-", 20}, {"weir_", 48}, {"weirsvc_", 48},
}

const minAccessKey = 20

func findAccessKey(text []byte, from int) (int, int) {
	for i := from; i < len(text); {
		end := ofKey.run(text, i)
		if end-i >= minAccessKey && (i == 0 || !ofKey[text[i-1]]) && isAccessKey(text[i:end]) {
			return i, end
		}
		i = end + 1
	}
	return -1, -1
}

func isAccessKey(text []byte) bool {
	return slices.ContainsFunc(accessKeys, func(key accessKey) bool {
		return len(text) >= len(key.prefix)+key.least && string(text[:len(key.prefix)]) == key.prefix
	})
}

// Names of secrets: a name that has one of the first inside, or one of the
// others at its end, without case, hyphens, dots and underscores.
var (
	secretNames   = []string{"password", "passwd", "passphrase", "secret", "apikey", "authorization", "privatekey", "accesskey", "credential"}
	secretEndings = []string{"pwd", "token", "cookie"}
)

const maxSecretName = 64 // bytes of a name that count

func isSecretName(name []byte) bool {
	var buffer [maxSecretName]byte
	plain := buffer[:0]
	for _, c := range name[max(0, len(name)-maxSecretName):] {
		switch {
		case 'A' <= c && c <= 'Z':
			plain = append(plain, c|0x20)
		case c != '-' && c != '.' && c != '_':
			plain = append(plain, c)
		}
	}
	for _, secret := range secretNames {
		if bytes.Contains(plain, []byte(secret)) {
			return true
		}
	}
	for _, secret := range secretEndings {
		if bytes.HasSuffix(plain, []byte(secret)) {
			return true
		}
	}
	return false
}

// findPassword finds values that a text gives to a secret's name: password=x,
// "secret": "x", and passwords in addresses.
func findPassword(text []byte, from int) (int, int) {
	for i := from; ; i++ {
		sign := bytes.IndexAny(text[i:], "=:")
		if sign < 0 {
			return -1, -1
		}
		i += sign
		if start, end := addressPassword(text, i); start < end {
			return start, end
		}
		end := ofNameEnds.back(text, i, from, maxGap)
		name := text[ofName.back(text, end, from, maxSecretName):end]
		if !isSecretName(name) {
			continue
		}
		if start, end := valueBehind(text, ofSigns.run(text, i+1), isHeader(name)); start < end {
			return start, end
		}
	}
}

// How far a password is looked for.
const (
	maxGap         = 64 // between name and sign
	maxUserInfo    = 512
	maxQuotedValue = 8 << 10
)

// addressPassword returns the password in an address such as
// postgres://user:secret@host whose colon is at i.
func addressPassword(text []byte, i int) (start, end int) {
	if !bytes.HasPrefix(text[i:], []byte("://")) {
		return 0, 0
	}
	user := i + len("://")
	stop := min(len(text), user+maxUserInfo)
	if n := bytes.IndexAny(text[user:stop], "/ \"'<>\n"); n >= 0 {
		stop = user + n
	}
	at, colon := bytes.LastIndexByte(text[user:stop], '@'), bytes.IndexByte(text[user:stop], ':')
	if colon < 0 || at <= colon {
		return 0, 0
	}
	return user + colon + 1, user + at
}

var schemes = [][]byte{[]byte("basic"), []byte("bearer"), []byte("digest")}

// isHeader reports whether a secret's name is that of a header, whose value is
// all of its line.
func isHeader(name []byte) bool {
	name = bytes.ToLower(name)
	return bytes.HasSuffix(name, []byte("authorization")) || bytes.HasSuffix(name, []byte("cookie"))
}

// valueBehind returns the value at i, behind the sign of a secret's name.
func valueBehind(text []byte, i int, header bool) (start, end int) {
	if quote := ofSlashes.run(text, i); quote < len(text) && (text[quote] == '"' || text[quote] == '\'') {
		end, _ = quotedEnd(text, quote, quote-i)
		return quote + 1, end
	}
	if i < len(text) && (text[i] == '[' || text[i] == '{') {
		if end = bracketEnd(text, i); end == i+len("[]") {
			return i, i
		}
		return i, end
	}
	end = wordEnd(text, i)
	for _, scheme := range schemes {
		if bytes.EqualFold(text[i:end], scheme) && end < len(text) && text[end] == ' ' {
			i, end = end+1, wordEnd(text, end+1)
		}
	}
	if header {
		end = len(text)
		if n := bytes.IndexAny(text[i:], "\r\n"); n >= 0 {
			end = i + n
		}
	}
	return i, end
}

// quotedEnd returns the end of what the quote at open begins, and the offset
// behind the quote that ends it. Each time that JSON is escaped again doubles
// backslashes, and puts one before the quote: so many are before a quote that
// ends a text, and more before one inside.
func quotedEnd(text []byte, open, slashes int) (end, after int) {
	limit := min(len(text), open+1+maxQuotedValue)
	for i := open + 1; i < limit; i++ {
		if text[i] != text[open] {
			continue
		}
		if n := i - ofSlashes.back(text, i, open+1, maxQuotedValue); n < slashes || n%(2*slashes+2) == slashes {
			return i - min(n, slashes), i + 1
		}
	}
	return limit, limit
}

// bracketEnd returns the offset behind the bracket that closes the one at i.
func bracketEnd(text []byte, i int) int {
	limit, depth := min(len(text), i+maxQuotedValue), 0
	for from := i; i < limit; i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			_, after := quotedEnd(text, i, i-ofSlashes.back(text, i, from, maxQuotedValue))
			i = after - 1
		}
	}
	return min(len(text), i)
}

func wordEnd(text []byte, i int) int {
	if n := bytes.IndexAny(text[i:], " \t\r\n,;&\"'<>)]}"); n >= 0 {
		return i + n
	}
	return len(text)
}
