package kafka

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxAhead is how far a record may be ahead of this machine's clock,
// Apache Kafka's default of message.timestamp.after.max.ms.
const maxAhead = time.Hour

// refuseAhead refuses records further ahead; kfake takes any time.
// Apache Kafka refuses only the batch with one; this refuses the whole
// request, which one client has stamped by one clock.
func refuseAhead(cluster *kfake.Cluster) {
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp, Count: -1, When: isAhead})
}

func isAhead(request kmsg.Request) bool {
	latest := time.Now().Add(maxAhead).UnixMilli() //nolint:forbidigo // a broker trusts its machine's clock and no other
	for _, topic := range request.(*kmsg.ProduceRequest).Topics {
		for _, partition := range topic.Partitions {
			if newest(partition.Records) > latest {
				return true
			}
		}
	}
	return false
}

// newest returns the time of a batch's newest record, from its
// header, in milliseconds.
func newest(batch []byte) int64 {
	if len(batch) < batchNewestAt+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(batch[batchNewestAt:]))
}
