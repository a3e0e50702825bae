package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/tracing"
)

// An Intake serves POST /v1/logs.
type Intake struct {
	Service         *intake.Service
	Bodies          *Bodies // of requests with a key in the header
	AnonymousBodies *Bodies // of requests whose key may be in the body
	Refusals        *httpapi.Refusals
	Proxies         []netip.Prefix
	Limits          ingest.Limits
	Strict          bool         // the default without a preference
	Ready           func() error // nil once requests can be judged
	Metrics         *Metrics
	Rejected        *rejected.Recorder

	parsers, normalizers, recordParsers, translators sync.Pool
}

// A request is one request in the intake.
type request struct {
	in        *Intake
	w         http.ResponseWriter
	r         *http.Request
	options   requestOptions
	caller    intake.Caller
	admission admission.Admission
	digest    admission.Digest // of the body, if there is an idempotency key
	changes   *ingest.Changes  // of a lenient request
	wasted    int64            // bytes received with nothing accepted
	unread    ingest.Sample    // of a body that can't be read

	translated *translated // nil: entries of ours
	outcomeFacts
}

// Post accepts entries. The order of the checks is part of the
// interface: headers, key, rate, quota, size of the body, decoding,
// validation. What rate or quota refuse is not read.
func (in *Intake) Post(w http.ResponseWriter, r *http.Request) error {
	return in.take(&request{in: in, w: w, r: r})
}

func (in *Intake) take(q *request) error {
	if err := in.Ready(); err != nil {
		return httpapi.Starting(err)
	}
	r, err := q.r, q.serve()
	q.in.Service.CountUse(q.caller, err, httpapi.ClientAddress(r, q.in.Proxies), r.UserAgent())
	q.countOutcome(err)
	q.noteRefusal(err)
	if q.wasted > 0 && !errors.Is(err, errNoFault) && !isServersFault(err) {
		q.in.Service.ChargeWaste(q.caller, q.network(), q.wasted)
		q.in.Metrics.waste(q.wasted)
	}
	q.in.Refusals.Pace(r.Context(), q.in.Service.Clock(), q.network(), err)
	return err
}

func (q *request) serve() error {
	key, unreadable := q.apiKey()
	var refused error
	if key != "" {
		refused = q.authenticate(key)
	}
	if unreadable == nil {
		unreadable = q.readHeaders()
	}
	if key == "" && unreadable == nil && q.translated == nil && q.r.ContentLength != 0 {
		return q.serveKeyInBody()
	}
	if key == "" {
		refused = q.authenticate(key)
	}
	return q.serveKey(refused, unreadable)
}

func (q *request) apiKey() (string, error) {
	if q.translated != nil {
		return q.translated.apiKey(q.r)
	}
	return identity.APIKeyOf(q.r.Header)
}

func (q *request) readHeaders() (err error) {
	if q.translated != nil {
		q.options, err = q.translated.readHeaders(q.r.Header)
	} else {
		q.options, err = readHeaders(q.r.Header, requestOptions{strict: q.in.Strict, lenient: q.caller.Lenient || q.caller.FromPage()})
	}
	return err
}

// serveKey serves a request with its key in the header, or nowhere.
// refused is the fault of the key, unreadable that of the other headers.
func (q *request) serveKey(refused, unreadable error) error {
	if refused != nil {
		if client := q.in.Service.AdmitClient(q.network()); !client.Allowed {
			return rateLimited(client)
		}
		return errors.Join(unreadable, refused)
	}
	if err := q.admit(); unreadable != nil || err != nil {
		return errors.Join(unreadable, err)
	}
	if err := q.admitPage(); err != nil {
		return err
	}
	body, err := q.read(q.in.Bodies, q.caller.Organization)
	if err != nil {
		return err
	}
	defer body.Close()
	if q.translated != nil {
		return q.acceptTranslated(body)
	}
	parser := q.parser()
	defer q.in.parsers.Put(parser)
	return q.accept(parsed(body, parser.ParseKeyed))
}

// serveKeyInBody serves the deprecated way, where the key is known only
// from the body. Such bodies have less memory, so that clients without
// a key can't block those with one.
func (q *request) serveKeyInBody() error {
	network := q.network()
	if client := q.in.Service.AdmitClient(network); !client.Allowed {
		return rateLimited(client)
	}
	if wait := q.in.Service.WaitOf(network); wait > 0 {
		return wastedTooMuch("address without a key in the header", wait)
	}
	body, err := q.read(q.in.AnonymousBodies, network.String())
	if err != nil {
		return err
	}
	defer body.Close()
	parser := q.parser()
	defer q.in.parsers.Put(parser)
	batch, invalid := parsed(body, parser.Parse)
	q.keyInBody = true
	if err := q.authenticate(keyOf(batch)); err != nil {
		return err
	}
	q.in.Service.ReleaseClient(network)
	if q.caller.FromPage() {
		return httpapi.NewProblem(http.StatusForbidden, "origin_not_allowed",
			"The API key is for web pages, and came in the body. Send it in the header x-api-key.")
	}
	deprecate(q.w.Header())
	if err := q.admit(); err != nil {
		return err
	}
	return q.accept(batch, invalid)
}

// parsed parses a body and charges its entries.
func parsed(body *Body, parse func([]byte) (*ingest.Batch, error)) (*ingest.Batch, error) {
	batch, err := parse(body.Bytes())
	if err == nil {
		body.Holds(batch)
	}
	return batch, err
}

// keyOf returns the key in a body; one that is no string is malformed,
// not missing.
func keyOf(batch *ingest.Batch) string {
	if batch.HasAPIKey && batch.APIKey == "" {
		return "malformed"
	}
	return batch.APIKey
}

// deprecate marks the key in the body as deprecated: RFC 9745 and RFC 8594.
func deprecate(header http.Header) {
	header.Set("Deprecation", "@1767225600") // 2026-01-01
	header.Set("Sunset", "Fri, 31 Dec 2027 23:59:59 GMT")
	header.Set("Link", `</v1/openapi.json>; rel="deprecation"; type="application/json"`)
}

func (q *request) authenticate(key string) (err error) {
	_, span := tracing.Start(q.r.Context(), "authenticate")
	q.caller, err = q.in.Service.Authenticate(key)
	tracing.End(span, err)
	tracing.SetOrganization(q.r.Context(), q.caller.Organization)
	q.allowOrigin()
	return err
}

func (q *request) network() netip.Prefix {
	return httpapi.ClientNetwork(httpapi.ClientAddress(q.r, q.in.Proxies))
}

// admit takes the request's tokens and refuses it by rate, waste or quota.
func (q *request) admit() error {
	q.admission = q.in.Service.Admit(q.caller.Principal)
	if q.admission.Verdict == ingest.Unknown && !q.keyInBody { // with it, a body would wait in memory
		q.awaitAccount()
		q.admission = q.in.Service.Admit(q.caller.Principal)
	}
	if q.admission.Verdict == ingest.Unknown {
		return refusal(intake.Refusal{Verdict: ingest.Unknown, Quota: q.admission.Quota, At: q.admission.Time})
	}
	setLimits(q.w.Header(), q.admission)
	switch {
	case q.admission.Wasted:
		return wastedTooMuch("organization", q.admission.Rate.RetryAfter)
	case !q.admission.Rate.Allowed:
		return rateLimited(q.admission.Rate)
	}
	refused := intake.Refusal{Verdict: q.admission.Verdict, Quota: q.admission.Quota, Budget: q.admission.Budget, At: q.admission.Time}
	return q.refuse(refused, refused.Verdict == ingest.Exhausted)
}

// accountTimeout is how long a request waits for the account of its
// organization, which the ledger opens a moment after its key is in force.
const accountTimeout = time.Second

func (q *request) awaitAccount() {
	ctx, cancel := context.WithTimeout(q.r.Context(), accountTimeout)
	defer cancel()
	q.in.Service.Gate.Await(ctx, q.caller.Organization)
}

// read reads the body into the holder's memory.
func (q *request) read(bodies *Bodies, holder string) (*Body, error) {
	format := Format{encoding: q.options.encoding, digested: q.options.idempotency != ""}
	switch {
	case q.translated != nil:
		format.translate, format.working = q.translate, q.translated.workingMemory
	case q.options.lenient || q.caller.FromPage():
		format.translate = q.normalize
	}
	body, err := bodies.Read(q.w, q.r, format, holder)
	q.wasted, q.received = body.Waste(), body.Received // wasted until something is accepted
	if format.digested {
		q.digest = body.Digest()
	}
	return body, err
}

func (q *request) normalize(body []byte, to io.Writer) error {
	normalizer := borrow(&q.in.normalizers, func() *ingest.Normalizer { return new(ingest.Normalizer) })
	defer q.in.normalizers.Put(normalizer)
	changes, err := normalizer.Normalize(body, q.caller.FromPage(), to)
	q.changes = &changes
	return q.invalidBody(err)
}

func (q *request) parser() *ingest.Parser {
	return borrow(&q.in.parsers, func() *ingest.Parser { return ingest.NewParser(q.in.Limits) })
}

// borrow takes what a pool has, or makes one.
func borrow[T any](pool *sync.Pool, create func() *T) *T {
	if idle, ok := pool.Get().(*T); ok {
		return idle
	}
	return create()
}

// accept accepts a body's entries or returns its fault. It answers 200
// once all are acknowledged.
func (q *request) accept(batch *ingest.Batch, invalid error) error {
	if invalid != nil {
		return q.invalidBody(invalid)
	}
	q.in.Metrics.judged(batch)
	q.in.Rejected.Note(q.caller.Principal, batch.Rejections...)
	q.entries, q.charged = int64(batch.Entries), batch.Bytes
	if q.options.preferred != "" {
		q.w.Header().Set("Preference-Applied", q.options.preferred)
	}
	if len(batch.Accepted) == 0 || q.options.strict && batch.Rejected > 0 {
		return invalidEntries(batch, q.options.strict)
	}
	dropped, wasted := droppedByClient(batch), wasteOf(batch, q.wasted) // before rules leave entries out
	sent := &intake.Submission{
		Caller: q.caller, Batch: batch, Idempotency: q.idempotency(), Digest: q.digest,
		Traceparent: tracing.Traceparent(q.r.Context(), q.r.Header.Get("Traceparent")),
	}
	receipt, err := q.in.Service.Accept(q.r.Context(), sent)
	if sent.Ruled > 0 {
		q.in.Bodies.throttle.Worked(q.caller.Organization, sent.Ruled)
	}
	if err != nil {
		return q.notAccepted(err)
	}
	q.wasted, q.dropped = wasted, dropped
	q.answer(batch, receipt)
	return nil
}

// answer writes the receipt of this request or of an earlier one with
// the same idempotency key.
func (q *request) answer(batch *ingest.Batch, receipt intake.Receipt) {
	quota := receipt.Quota
	q.entries, q.rejected, q.rejectedBytes = int64(len(batch.Accepted)), int64(batch.Rejected), batch.RejectedBytes
	if receipt.Replayed {
		q.entries, q.charged, q.dropped = 0, 0, nil
		quota = q.admission.Quota
		q.w.Header().Set("Idempotency-Replayed", "true")
	} else {
		setRateLimit(q.w.Header(), q.admission, quota)
		q.in.Metrics.accepted(batch)
		q.charged, q.ruling = receipt.Bytes, receipt.Ruling
	}
	q.w.Header().Set("Weir-Batch-Id", receipt.Batch)
	if q.translated != nil {
		q.rejected += q.translated.leftOut().Entries
		q.translated.answer(q.w, batch)
		return
	}
	answer(q.w, batch, q.changes, receipt.Bytes, quota)
}

// notAccepted is the answer to a batch that was not accepted.
func (q *request) notAccepted(err error) error {
	var refused *intake.Refusal
	switch {
	case errors.As(err, &refused):
		setRateLimit(q.w.Header(), q.admission, refused.Quota)
		return q.refuse(*refused, refused.Verdict == ingest.Exhausted && q.options.idempotency == "")
	case errors.Is(err, intake.ErrKeyReused):
		return httpapi.NewProblem(http.StatusBadRequest, "idempotency_key_reused",
			"The Idempotency-Key was used with another body within 24 hours. Use a new key for a new request.")
	case errors.Is(err, rules.ErrUnreadable):
		httpapi.Logger(q.r.Context()).Error("cannot apply rules", slog.String("error", err.Error()))
		return httpapi.Unavailable("The rules of the project can't be read here, so nothing was accepted. Send the whole request again.", unreadableRetry)
	case errors.Is(err, rules.ErrSlow):
		return errors.Join(httpapi.NewProblem(http.StatusTooManyRequests, codeOverloaded,
			"The rules of the project take too long for so many entries. Send fewer in one request, or make the expressions of the rules simpler.").
			RetryAfter(time.Second), errNoFault)
	case errors.Is(err, intake.ErrReplayOpen):
		return errors.Join(overloaded(), errNoFault)
	case errors.Is(err, intake.ErrNotPublished):
		httpapi.Logger(q.r.Context()).Warn("cannot publish", slog.String("error", err.Error()))
		return httpapi.Unavailable("The log can't be written now. Send the whole request again.", time.Second)
	}
	return err
}

// unreadableRetry is the Retry-After of a project whose rules can't be read:
// somebody has to set them, or to upgrade the process.
const unreadableRetry = 10 * time.Second

// requestOptions are the options in a request's headers.
type requestOptions struct {
	encoding    encoding
	strict      bool   // one invalid entry refuses them all
	lenient     bool   // what is natural but not valid is normalized
	preferred   string // for Preference-Applied
	idempotency string // the Idempotency-Key
}

// readHeaders parses a request's options, from those without a preference.
func readHeaders(header http.Header, options requestOptions) (requestOptions, error) {
	readPrefer(header.Values("Prefer"), &options)
	err := requireJSON(header, options.lenient)
	if err == nil {
		err = options.readCommon(header)
	}
	return options, err
}

// readCommon reads what every protocol has.
func (o *requestOptions) readCommon(header http.Header) (err error) {
	if o.encoding, err = encodingOf(header); err != nil {
		return err
	}
	o.idempotency, err = readIdempotencyKey(header.Values("Idempotency-Key"))
	return err
}

func requireJSON(header http.Header, lenient bool) error {
	contentType, err := httpapi.OneHeader(header, "Content-Type")
	if err != nil || contentType == "application/json" {
		return err
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	lines := slices.Contains(linesTypes, media)
	if err == nil && (media == "application/json" || lenient && lines) && (!given || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	fix := "Send application/json, in UTF-8."
	switch {
	case media == typeProtobuf:
		fix = "OpenTelemetry sends to /v1/otlp/v1/logs by OTEL_EXPORTER_OTLP_LOGS_ENDPOINT or the Collector's logs_endpoint; Loki's shippers to /v1/loki/api/v1/push."
	case lines && !lenient:
		fix = "Send application/json, or entries a line each with the header Prefer: handling=lenient."
	}
	return httpapi.NewProblem(http.StatusBadRequest, "unsupported_media_type", fmt.Sprintf("The content type is %.100q. %s", contentType, fix))
}

// linesTypes are media types of an entry on each line.
var linesTypes = []string{"application/x-ndjson", "application/ndjson", "application/jsonl"}

// readPrefer reads handling=strict and handling=lenient of RFC 7240; the first
// of a preference counts. Unknown preferences are ignored, by the RFC.
func readPrefer(values []string, options *requestOptions) {
	for _, preference := range splitUnquoted(values, ',') {
		preference = splitUnquoted([]string{preference}, ';')[0] // without its parameters
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "handling") {
			continue
		}
		switch value = strings.ToLower(unquote(strings.TrimSpace(value))); value {
		case "strict", "lenient":
			options.strict, options.lenient, options.preferred = value == "strict", value == "lenient", "handling="+value
			return
		}
	}
}

// splitUnquoted cuts each value at separators outside of quoted
// strings (RFC 9110, section 5.6.4).
func splitUnquoted(values []string, separator byte) (parts []string) {
	for _, value := range values {
		start, quoted := 0, false
		for i := 0; i < len(value); i++ {
			switch c := value[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == separator && !quoted:
				parts = append(parts, value[start:i])
				start = i + 1
			}
		}
		parts = append(parts, value[start:])
	}
	return parts
}

// unquote returns the content of a quoted string; other text stays.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '\\' && i+1 < len(text)-1 {
			i++
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

func readIdempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	printable := strings.IndexFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
	if len(values) > 1 || len(key) == 0 || len(key) > 255 || !printable {
		return "", httpapi.NewProblem(http.StatusBadRequest, "invalid_idempotency_key",
			"The header Idempotency-Key must be there once, with 1 to 255 printable ASCII characters.")
	}
	return key, nil
}
