package http

import (
	"net/http"
	"strings"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/shippers"
	"github.com/weirlog/weir/shared/httpapi"
)

// Media types of a push request.
const (
	typeProtobuf = "application/x-protobuf" // always compressed by Snappy
	lokiJSON     = "application/json"
)

// A lokiProtocol is the push API of Loki.
type lokiProtocol struct{ media string }

// PostLoki accepts entries of streams, by the checks of Post and in their order.
func (in *Intake) PostLoki(w http.ResponseWriter, r *http.Request) error {
	return in.take(&request{in: in, w: w, r: r, translated: &translated{protocol: new(lokiProtocol)}})
}

func (*lokiProtocol) apiKey(r *http.Request) (string, error) { return shipperKey(r) }

func (l *lokiProtocol) readHeaders(header http.Header) (options requestOptions, err error) {
	if l.media, err = mediaOf(header, typeProtobuf, lokiJSON); err != nil {
		return options, err
	}
	if l.media == typeProtobuf && strings.EqualFold(header.Get("Content-Encoding"), "snappy") {
		header.Del("Content-Encoding") // it says what the type says already
	}
	err = options.readCommon(header)
	return options, err
}

func (l *lokiProtocol) workingMemory(body []byte) int64 {
	if l.media == typeProtobuf {
		return shippers.WorkingMemory(shippers.UnpackedLoki(body))
	}
	return shippers.WorkingMemory(int64(len(body)))
}

func (l *lokiProtocol) toOTLP(body []byte) ([]byte, error) {
	if l.media == typeProtobuf {
		return shippers.Loki(body, maxRecords)
	}
	return shippers.LokiJSON(body, maxRecords)
}

func (*lokiProtocol) invalid(err error) error {
	return httpapi.NewProblem(http.StatusBadRequest, "invalid_loki",
		"The body can't be read as a push request of Loki: "+strings.TrimSuffix(err.Error(), ".")+". Send protobuf compressed by Snappy, or JSON.")
}

func (*lokiProtocol) leftOut() ingest.Rejection { return ingest.Rejection{} }

// answer says nothing of rejected records: to Loki's clients, an answer but
// 204 means that nothing was stored.
func (*lokiProtocol) answer(w http.ResponseWriter, _ *ingest.Batch) {
	w.WriteHeader(http.StatusNoContent)
}
