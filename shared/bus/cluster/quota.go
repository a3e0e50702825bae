package cluster

import (
	"context"
	"errors"
	"fmt"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// A Quota limits clients of each broker.
type Quota struct {
	Of    map[string]string  // whom, by "user", "client-id" or "ip"; "" stands for all that have none of their own; bounded by these kinds
	Rates map[string]float64 // by Kafka's names, such as producer_byte_rate; bounded by Kafka's
}

// ErrQuotasUnseen means that the user may not see quotas. It takes the ACL
// DescribeConfigs of the cluster.
var ErrQuotasUnseen = errors.New("quotas can't be seen (ACL: DescribeConfigs of the cluster)")

// Quotas returns all quotas.
func Quotas(ctx context.Context, brokers []string, dialer *bus.Dialer) (found []Quota, err error) {
	answer, err := broker.NewCluster(brokers, dialer).Quotas(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for quotas: %w", err)
	}
	switch code := kafka.Error(answer.ErrorCode); code {
	case 0:
	case kafka.ClusterAuthorizationFailed:
		return nil, ErrQuotasUnseen
	default:
		return nil, fmt.Errorf("cannot ask for quotas: %w", code)
	}
	for _, entry := range answer.Entries {
		q := Quota{Of: map[string]string{}, Rates: map[string]float64{}}
		for _, entity := range entry.Entity {
			q.Of[entity.Type] = ""
			if entity.Name != nil {
				q.Of[entity.Type] = *entity.Name
			}
		}
		for _, value := range entry.Values {
			q.Rates[value.Key] = value.Value
		}
		found = append(found, q)
	}
	return found, nil
}
