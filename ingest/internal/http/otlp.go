package http

import (
	"maps"
	"mime"
	"net/http"
	"strconv"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/otlp"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// An otlpProtocol is OTLP/HTTP.
type otlpProtocol struct{ encoding otlp.Encoding }

// PostOTLP accepts log records of OpenTelemetry, by the checks of Post and
// in their order.
func (in *Intake) PostOTLP(w http.ResponseWriter, r *http.Request) error {
	return in.take(&request{in: in, w: w, r: r, translated: &translated{protocol: new(otlpProtocol)}})
}

func (*otlpProtocol) apiKey(r *http.Request) (string, error) { return identity.APIKeyOf(r.Header) }

// answersOTLP makes errors the answers of the protocol. A Collector sends
// again after a 503, and drops what was answered with 500.
func answersOTLP(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err == nil {
			return nil
		}
		problem := httpapi.AsProblem(r, err)
		maps.Copy(w.Header(), problem.Header)
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

func (o *otlpProtocol) readHeaders(header http.Header) (options requestOptions, err error) {
	media, err := mediaOf(header, string(otlp.Protobuf), string(otlp.JSON))
	if err != nil {
		return options, err
	}
	o.encoding = otlp.Encoding(media)
	err = options.readCommon(header)
	return options, err
}

func otlpEncoding(contentType string) (encoding otlp.Encoding, known bool) {
	media, _, _ := mime.ParseMediaType(contentType)
	encoding = otlp.Encoding(media)
	return encoding, encoding == otlp.Protobuf || encoding == otlp.JSON
}

func (o *otlpProtocol) workingMemory(body []byte) int64 {
	if o.encoding == otlp.JSON {
		return otlp.WorkingMemory(body)
	}
	return 0
}

func (o *otlpProtocol) toOTLP(body []byte) ([]byte, error) {
	if o.encoding == otlp.Protobuf {
		return body, nil
	}
	return otlp.ToProtobuf(body)
}

func (*otlpProtocol) invalid(err error) error {
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_otlp", err.Error()+" Send an ExportLogsServiceRequest of OTLP 1.x.")
}

func (*otlpProtocol) leftOut() ingest.Rejection { return ingest.Rejection{} }

// answer says how many records were rejected, and why the first was.
func (o *otlpProtocol) answer(w http.ResponseWriter, batch *ingest.Batch) {
	rejected, reason := 0, ""
	if batch != nil && batch.Rejected > 0 {
		first := batch.Faults[0]
		rejected, reason = batch.Rejected, faultText(first.Pointer, first.Detail, first.Fix)
	}
	writeOTLP(w, http.StatusOK, o.encoding, o.encoding.Answer(rejected, reason))
}
