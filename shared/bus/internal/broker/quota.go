package broker

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Quotas asks for all quotas. Brokers since Kafka 2.8 answer.
func (c *Cluster) Quotas(ctx context.Context) (*kmsg.DescribeClientQuotasResponse, error) {
	request := kmsg.NewPtrDescribeClientQuotasRequest()
	request.Version = 1
	answer, err := c.Ask(ctx, &exchange{request: request, clientID: c.Dialer.ClientID})
	if err != nil {
		return nil, err
	}
	return answer.(*exchange).answer.(*kmsg.DescribeClientQuotasResponse), nil
}
