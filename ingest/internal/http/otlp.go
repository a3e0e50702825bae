package http

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/otlp"
	"github.com/weirlog/weir/shared/httpapi"
)

// maxRecords is how many log records a request may have: the Collector
// sends 8,192 at once unless it is told otherwise.
const maxRecords = 20_000

// An otlpRequest is what a request of OpenTelemetry has beside others.
type otlpRequest struct {
	encoding    otlp.Encoding
	translation otlp.Translation
}

// PostOTLP accepts log records of OpenTelemetry, by the checks of Post and
// in their order.
func (in *Intake) PostOTLP(w http.ResponseWriter, r *http.Request) error {
	return in.take(&request{in: in, w: w, r: r, otlp: new(otlpRequest)})
}

// answersOTLP makes errors the answers of the protocol. A Collector sends
// again after a 503, and drops what was answered with 500.
func answersOTLP(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err == nil {
			return nil
		}
		problem := httpapi.AsProblem(r, err)
		for name, values := range problem.Header {
			w.Header()[name] = values
		}
		status, message := problem.Status, problem.Code+": "+problem.Detail
		if status == http.StatusInternalServerError {
			status = http.StatusServiceUnavailable
		}
		if len(problem.Faults) > 0 {
			message += " " + faultText(problem.Faults[0].Pointer, problem.Faults[0].Detail, problem.Faults[0].Fix)
		}
		encoding, known := otlpEncoding(r.Header.Get("Content-Type"))
		if !known {
			encoding = otlp.JSON
		}
		writeOTLP(w, status, encoding, encoding.Status(message))
		return nil
	}
}

func writeOTLP(w http.ResponseWriter, status int, encoding otlp.Encoding, body []byte) {
	w.Header().Set("Content-Type", string(encoding))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func faultText(pointer, detail, fix string) string { return pointer + ": " + detail + " " + fix }

func (o *otlpRequest) readHeaders(header http.Header) (options requestOptions, err error) {
	contentType, err := httpapi.OneHeader(header, "Content-Type")
	if err != nil {
		return options, err
	}
	var known bool
	if o.encoding, known = otlpEncoding(contentType); !known {
		return options, httpapi.NewProblem(http.StatusBadRequest, "unsupported_media_type",
			fmt.Sprintf("The content type is %.100q. Send %s or %s.", contentType, otlp.Protobuf, otlp.JSON))
	}
	if options.encoding, err = encodingOf(header); err != nil {
		return options, err
	}
	options.idempotency, err = readIdempotencyKey(header.Values("Idempotency-Key"))
	return options, err
}

func otlpEncoding(contentType string) (encoding otlp.Encoding, known bool) {
	media, _, _ := mime.ParseMediaType(contentType)
	encoding = otlp.Encoding(media)
	return encoding, encoding == otlp.Protobuf || encoding == otlp.JSON
}

func (o *otlpRequest) workingMemory(body []byte) int64 {
	if o.encoding == otlp.JSON {
		return otlp.WorkingMemory(body)
	}
	return 0
}

// translateOTLP makes entries of log records. A request whose records all
// have an id is accepted once, as if it had an idempotency key.
func (q *request) translateOTLP(body []byte, to io.Writer) (err error) {
	if q.otlp.encoding == otlp.JSON {
		if body, err = otlp.ToProtobuf(body); err != nil {
			return notOTLP(err)
		}
	}
	translator := borrow(&q.in.translators, func() *otlp.Translator { return new(otlp.Translator) })
	defer q.in.translators.Put(translator)
	q.otlp.translation, err = translator.Translate(body, q.caller.FromPage(), q.in.Service.Clock(), to)
	return notOTLP(err)
}

func notOTLP(err error) error {
	if invalid, is := errors.AsType[*otlp.Invalid](err); is {
		return httpapi.NewProblem(http.StatusBadRequest, "invalid_otlp", invalid.Detail+" Send an ExportLogsServiceRequest of OTLP 1.x.")
	}
	return err
}

// acceptOTLP accepts the entries that log records became.
func (q *request) acceptOTLP(body *Body) error {
	if q.otlp.translation.Records == 0 {
		writeOTLP(q.w, http.StatusOK, q.otlp.encoding, q.otlp.encoding.Answer(0, ""))
		return nil
	}
	if id := q.otlp.translation.Identity; id != nil && q.options.idempotency == "" {
		q.options.idempotency, q.digest = "log.record.uid "+hex.EncodeToString(id), admission.Digest(id)
	}
	parser := borrow(&q.in.otlpParsers, func() *ingest.Parser {
		limits := q.in.Limits
		limits.Entries = maxRecords
		return ingest.NewParser(limits)
	})
	defer q.in.otlpParsers.Put(parser)
	return q.accept(parsed(body, parser.ParseKeyed))
}

// answerOTLP says how many records were rejected, and why the first was.
func (q *request) answerOTLP(batch *ingest.Batch) {
	reason := ""
	if batch.Rejected > 0 {
		first := batch.Faults[0]
		reason = faultText(first.Pointer, first.Detail, first.Fix)
	}
	writeOTLP(q.w, http.StatusOK, q.otlp.encoding, q.otlp.encoding.Answer(batch.Rejected, reason))
}
