package http

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/otlp"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// maxRecords is how many log records a request of another protocol may
// have: the Collector sends 8,192 at once unless it is told otherwise.
const maxRecords = 20_000

// A protocol is another than ours. Its requests are rewritten as those of
// OTLP in protobuf, and these are translated to entries.
type protocol interface {
	apiKey(r *http.Request) (string, error)
	readHeaders(header http.Header) (requestOptions, error)
	workingMemory(body []byte) int64 // of toOTLP, beside what it returns
	toOTLP(body []byte) ([]byte, error)
	invalid(err error) error   // the answer to a body that can't be read
	leftOut() ingest.Rejection // of entries that became no record
	// answer tells which records were rejected. A batch that is nil had none.
	answer(w http.ResponseWriter, batch *ingest.Batch)
}

// A translated request is one of another protocol.
type translated struct {
	protocol
	translation otlp.Translation
}

// translate makes entries of log records. A request whose records all
// have an id is accepted once, as if it had an idempotency key.
func (q *request) translate(body []byte, to io.Writer) (err error) {
	sent := body
	if body, err = q.translated.toOTLP(body); err != nil {
		return q.invalidTranslation(sent, err)
	}
	translator := borrow(&q.in.translators, func() *otlp.Translator { return new(otlp.Translator) })
	defer q.in.translators.Put(translator)
	q.translated.translation, err = translator.Translate(body, q.caller.FromPage(), q.in.Service.Clock(), to)
	if invalid, is := errors.AsType[*otlp.Invalid](err); is {
		return q.invalidTranslation(sent, invalid)
	}
	return err
}

// invalidTranslation keeps the beginning of a body, if it is text.
func (q *request) invalidTranslation(body []byte, err error) error {
	if beginning, cut := ingest.BeginningOf(body); strings.HasPrefix(http.DetectContentType(beginning), "text/") {
		q.unread = ingest.Sample{Text: bytes.Clone(beginning), Cut: cut}
	}
	return q.translated.invalid(err)
}

// acceptTranslated accepts the entries that log records became.
func (q *request) acceptTranslated(body *Body) error {
	lost := q.translated.leftOut()
	if lost.Entries > 0 {
		q.in.Rejected.Note(q.caller.Principal, lost)
	}
	if q.translated.translation.Records == 0 {
		if lost.Entries > 0 {
			q.entries = lost.Entries
			return httpapi.NewProblem(http.StatusBadRequest, string(ingest.CodeInvalidEntries), "None of the entries can be read. Nothing was stored.")
		}
		q.translated.answer(q.w, nil)
		return nil
	}
	if id := q.translated.translation.Identity; id != nil && q.options.idempotency == "" {
		q.options.idempotency, q.digest = "log.record.uid "+hex.EncodeToString(id), admission.Digest(id)
	}
	parser := borrow(&q.in.recordParsers, func() *ingest.Parser {
		limits := q.in.Limits
		limits.Entries, limits.Faults = maxRecords, maxRecords
		return ingest.NewParser(limits)
	})
	defer q.in.recordParsers.Put(parser)
	return q.accept(parsed(body, parser.ParseKeyed))
}

// mediaOf returns the media type of a request, and whether its protocol knows it.
func mediaOf(header http.Header, known ...string) (media string, err error) {
	contentType, err := httpapi.OneHeader(header, "Content-Type")
	if err != nil {
		return "", err
	}
	media, _, _ = mime.ParseMediaType(contentType)
	for _, k := range known {
		if media == k {
			return media, nil
		}
	}
	return "", httpapi.NewProblem(http.StatusBadRequest, "unsupported_media_type",
		"The content type is "+strconv.QuoteToASCII(contentType[:min(len(contentType), 100)])+". Send "+strings.Join(known, " or ")+".")
}

// shipperKey returns the key of a shipper, many of which can't send a header
// of their own: it may also be the password of Basic, or the token of ApiKey.
func shipperKey(r *http.Request) (string, error) {
	key, err := identity.APIKeyOf(r.Header)
	if key != "" {
		return key, err
	}
	if _, password, is := r.BasicAuth(); is {
		return password, nil
	}
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "ApiKey") {
		return token, nil
	}
	return "", err
}
