package http

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyuse"
	"github.com/weirlog/weir/shared/rate"
)

// maxPartBytes is how many bytes of lines go into one record. It must never change while idempotency keys are alive:
// the same body has to be cut into the same parts.
const maxPartBytes = 900 << 10

// publishPace is for how many bytes a request has a second more to be published: those of large ones take turns.
const publishPace = 4 << 20

// A Publisher writes an accepted request to the log: the brokers, or a test's memory.
type Publisher interface {
	Publish(ctx context.Context, accepted ingest.Acceptance, fate bus.Fate) error
}

// An Intake answers POST /v1/logs.
type Intake struct {
	Credentials *identity.Credentials
	Gate        *admission.Gate
	Clients     *admission.Clients
	Replays     *admission.Replays
	Bodies      *Bodies // of requests with a key
	Strangers   *Bodies // of requests whose key may be in the body
	Publisher   Publisher
	Proxies     []netip.Prefix
	Limits      ingest.Limits
	Strict      bool          // the default where a request does not say
	Timeout     time.Duration // how long a small request waits for the brokers
	Ready       func() error  // nil once requests can be judged
	Clock       func() time.Time
	NewBatch    func() string // makes UUIDv7s
	Metrics     *Metrics
	Meter       *keyuse.Meter // counts the uses of keys; nil: nobody does

	parsers sync.Pool
}

// request is one request on its way through the intake.
type request struct {
	*Intake
	w       http.ResponseWriter
	r       *http.Request
	asked   wishes
	who     identity.Principal
	passage admission.Passage
	digest  admission.Digest // of the body, if there is an idempotency key
	bodyKey bool             // the key came in the body
	ended   bool             // the key is one that has ended
	wasted  int64            // bytes that came and of which nothing was accepted
}

// Post takes in entries. The order of the checks is part of the interface: headers, key, rate, quota, size of the body,
// decoding, validation. What is refused by rate or quota is not read.
func (in *Intake) Post(w http.ResponseWriter, r *http.Request) error {
	if err := in.Ready(); err != nil {
		return httpapi.Unavailable("The service is starting: "+err.Error()+".", time.Second)
	}
	q := &request{Intake: in, w: w, r: r}
	err := q.serve()
	q.note(err)
	q.chargeWaste(err)
	return err
}

// chargeWaste takes what was sent in vain, by a fault of its sender, from what its sender may send so.
func (q *request) chargeWaste(err error) {
	switch {
	case q.wasted <= 0 || errors.Is(err, errNoFault) || isServersFault(err):
		return
	case q.who.ID == "" || q.ended:
		q.Clients.Waste(q.network(), q.Clock().UnixNano(), q.wasted)
	default:
		q.Gate.Waste(q.who.Organization, q.wasted)
	}
	q.Metrics.waste(q.wasted)
}

// note counts a use of the key, if the request came with one that is known.
func (q *request) note(err error) {
	outcome := keyuse.Accepted
	switch {
	case q.who.ID == "":
		return
	case q.ended:
		outcome = keyuse.Refused
	case err != nil:
		outcome = keyuse.Rejected
	}
	q.Meter.Note(q.who, outcome, httpapi.ClientAddress(q.r, q.Proxies), q.r.UserAgent())
}

func (q *request) serve() error {
	r := q.r
	var unreadable error
	q.asked, unreadable = readHeaders(r.Header, q.Strict)
	key := r.Header.Get("X-Api-Key")
	if key == "" && unreadable == nil && r.ContentLength != 0 {
		return q.withKeyInBody()
	}
	err := q.authenticate(key)
	if err != nil {
		if client := q.takeClient(); !client.Allowed {
			return rateLimited(client)
		}
		return errors.Join(unreadable, err)
	}
	if err := q.enter(); unreadable != nil || err != nil {
		return errors.Join(unreadable, err)
	}
	return q.readAndTake()
}

// withKeyInBody serves the deprecated way: who it is only shows when the body is read. Such a body gets less memory, so
// that nobody without a key can keep out those who have one.
func (q *request) withKeyInBody() error {
	if client := q.takeClient(); !client.Allowed {
		return rateLimited(client)
	}
	if wait := q.Clients.Wait(q.network(), q.Clock().UnixNano()); wait > 0 {
		return wastedTooMuch("address without a key in the header", wait)
	}
	return q.parse(q.Strangers, q.network().String(), func(batch *ingest.Batch, invalid error) error {
		if !batch.HasAPIKey {
			return q.authenticate("")
		}
		key := batch.APIKey
		if key == "" {
			key = "malformed"
		}
		if err := q.authenticate(key); err != nil {
			return err
		}
		q.bodyKey = true
		q.Clients.Give(q.network(), q.Clock().UnixNano())
		deprecate(q.w.Header())
		if err := q.enter(); err != nil {
			return err
		}
		return q.take(batch, invalid)
	})
}

// deprecate says that the key in the body is on its way out: RFC 9745 and RFC 8594.
func deprecate(header http.Header) {
	header.Set("Deprecation", "@1767225600") // 2026-01-01
	header.Set("Sunset", "Fri, 31 Dec 2027 23:59:59 GMT")
	header.Set("Link", `</v1/openapi.json>; rel="deprecation"; type="application/json"`)
}

func (q *request) authenticate(key string) (err error) {
	if q.who, err = identity.APIKey(q.Credentials, key); err != nil {
		q.who, q.ended = q.Credentials.Ended(key)
	}
	return err
}

func (q *request) network() netip.Prefix {
	return httpapi.ClientNetwork(httpapi.ClientAddress(q.r, q.Proxies))
}

func (q *request) takeClient() rate.Result {
	return q.Clients.Take(q.network(), q.Clock().UnixNano())
}

// enter takes the request's tokens and looks whether any quota is left.
func (q *request) enter() error {
	q.passage = q.Gate.Enter(q.who)
	if q.passage.Verdict == ingest.Unknown {
		return refusal(ingest.Unknown, q.passage.Quota, q.passage.Time)
	}
	setLimits(q.w.Header(), q.passage)
	switch {
	case q.passage.Wasted:
		return wastedTooMuch("organization", q.passage.Rate.RetryAfter)
	case !q.passage.Rate.Allowed:
		return rateLimited(q.passage.Rate)
	}
	return refusal(q.passage.Verdict, q.passage.Quota, q.passage.Time)
}

func (q *request) readAndTake() error { return q.parse(q.Bodies, q.who.Organization, q.take) }

// parse reads the body, for which holder's memory is taken, and calls use with what it holds; the batch ends with use.
func (q *request) parse(bodies *Bodies, holder string, use func(batch *ingest.Batch, invalid error) error) error {
	body, err := bodies.Read(q.w, q.r, q.asked.encoding, holder)
	q.wasted = body.Came // until something is accepted
	if err != nil {
		return err
	}
	defer body.Close()
	if q.asked.idempotency != "" {
		q.digest = digestOf(body.Bytes())
	}
	parser, ok := q.parsers.Get().(*ingest.Parser)
	if !ok {
		parser = ingest.NewParser(q.Limits)
	}
	defer q.parsers.Put(parser)
	parse := parser.Parse
	if q.who.ID != "" {
		parse = parser.ParseKeyed
	}
	batch, err := parse(body.Bytes())
	return use(batch, err)
}

// take takes in what a body holds, or says what is wrong with it.
func (q *request) take(batch *ingest.Batch, invalid error) error {
	if invalid != nil {
		return invalidBody(invalid)
	}
	q.Metrics.judged(batch)
	if q.asked.preferred != "" {
		q.w.Header().Set("Preference-Applied", q.asked.preferred)
	}
	if len(batch.Accepted) == 0 || q.asked.strict && batch.Rejected > 0 {
		return invalidEntries(batch, q.asked.strict)
	}
	if q.asked.idempotency != "" {
		return q.takeOnce(batch)
	}
	return q.publish(batch, "", "")
}

// publish reserves quota, publishes, and answers 200 once the brokers have acknowledged everything.
func (q *request) publish(batch *ingest.Batch, idempotency, digest string) error {
	now := q.Clock()
	reserve := q.Gate.Reserve
	if idempotency != "" { // another replica, or an earlier run of this one, may have taken it in already
		reserve = q.Gate.Try
	}
	reservation, verdict, quota := reserve(q.who.Organization, now, batch.Bytes)
	if err := refusal(verdict, quota, now); err != nil {
		setRateLimit(q.w.Header(), q.passage, quota)
		return err
	}
	accepted := ingest.Acceptance{
		Batch: q.NewBatch(), Organization: q.who.Organization, Project: q.who.Project, Environment: q.who.Environment,
		Key: q.who.ID, At: now, Idempotency: idempotency, Digest: digest, Parts: batch.Parts(nil, maxPartBytes),
	}
	if parent := q.r.Header.Get("Traceparent"); ingest.WellFormedTraceparent(parent) {
		accepted.Traceparent = parent
	}
	// Whether the client still listens must not decide what becomes of a request that is half written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), q.Timeout+time.Duration(batch.Bytes/publishPace)*time.Second)
	defer cancel()
	if err := q.Publisher.Publish(ctx, accepted, reservation); err != nil {
		httpapi.Logger(q.r.Context()).Warn("cannot publish", slog.String("error", err.Error()))
		return httpapi.Unavailable("The log can't be written now. Send the whole request again.", time.Second)
	}
	quota = reservation.Status()
	setRateLimit(q.w.Header(), q.passage, quota)
	q.wasted = wasteOf(batch, q.wasted)
	q.Metrics.accepted(batch)
	answer(q.w, batch, batch.Bytes, quota)
	return nil
}
