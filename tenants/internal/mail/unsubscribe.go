package mail

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	"github.com/weirlog/weir/tenants"
)

// UnsubscribePath is the page that links lead to.
const UnsubscribePath = "/console/unsubscribe"

// signatureLength is how many bytes of its HMAC-SHA-256 a link has.
const signatureLength = 16

// ErrLink means that a link was not made here, or was altered.
var ErrLink = errors.New("the link was not made by this installation")

// A Mailing is what a link ends: one kind of mail to a member.
type Mailing struct {
	Organization string
	Member       string
	Kind         tenants.MailKind
}

// Links are one installation's. They do not
// expire: a mail may be read years later.
type Links struct {
	origin string
	key    []byte
}

// NewLinks returns the links to pages under an origin. Their
// signing key is derived from key, which signs other things, too.
func NewLinks(origin string, key []byte) *Links {
	own, err := hkdf.Key(sha256.New, key, nil, "weir unsubscribe link", sha256.Size)
	if err != nil {
		panic("BUG: " + err.Error()) // only for keys that are too long
	}
	return &Links{origin, own}
}

// To is the link that ends a mailing.
func (l *Links) To(m Mailing) string {
	query := url.Values{"organization": {m.Organization}, "member": {m.Member}, "kind": {string(m.Kind)}}
	query.Set("signature", base64.RawURLEncoding.EncodeToString(l.signature(m)))
	return l.origin + UnsubscribePath + "?" + query.Encode()
}

// Read returns what a link ends, by its query, or ErrLink.
func (l *Links) Read(query url.Values) (Mailing, error) {
	m := Mailing{query.Get("organization"), query.Get("member"), tenants.MailKind(query.Get("kind"))}
	seal, err := base64.RawURLEncoding.Strict().DecodeString(query.Get("signature"))
	if err != nil || !hmac.Equal(seal, l.signature(m)) {
		return Mailing{}, ErrLink
	}
	return m, nil
}

// signature is the signature of a mailing. Each part is preceded
// by its length, so that no byte can move between parts.
func (l *Links) signature(m Mailing) []byte {
	mac := hmac.New(sha256.New, l.key)
	for _, part := range []string{m.Organization, m.Member, string(m.Kind)} {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return mac.Sum(nil)[:signatureLength]
}
