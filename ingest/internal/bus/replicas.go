package bus

import (
	"context"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
)

// Replicas counts the running replicas of ingest: the members of the log
// store's group. One that has just ended counts until its session does.
func Replicas(ctx context.Context, brokers []string, dialer *bus.Dialer) (ingest.Replicas, error) {
	members, err := cluster.Members(ctx, brokers, dialer, []string{contract.GroupLogStore})
	return ingest.Replicas(max(members[contract.GroupLogStore], 1)), err
}
