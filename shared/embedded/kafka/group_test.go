package kafka

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
)

// A client killed while it joins a group leaves it when its session
// ends, so that others get its partitions.
func TestKilledWhileJoining(t *testing.T) {
	b := start(t, Config{})
	create(t, b.Addr(), "test.group")
	member := client(t, b.Addr(), kgo.ConsumerGroup("test.group"), kgo.ConsumeTopics("test.group"),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second))
	go func() {
		for !member.PollFetches(t.Context()).IsClientClosed() && t.Context().Err() == nil {
		}
	}()
	awaitMembers(t, b.Addr(), 1)
	joinAndDie(t, b.Addr())
	awaitMembers(t, b.Addr(), 2)
	awaitMembers(t, b.Addr(), 1)
}

// joinAndDie sends a join request and disconnects before the answer.
func joinAndDie(t *testing.T, addr string) {
	t.Helper()
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{"test.group"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "cooperative-sticky", metadata.AppendTo(nil)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.ProtocolType = 2, "test.group", "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 6000, 6000
	req.Protocols = append(req.Protocols, protocol)
	conn, err := net.Dial("tcp", addr)
	testenv.Must(t, err)
	defer conn.Close()
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
}

// awaitMembers waits until the group is stable with so many members.
func awaitMembers(t *testing.T, addr string, want int) {
	t.Helper()
	c := client(t, addr)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-ticker.C {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{"test.group"}
		resp, err := req.RequestWith(t.Context(), c)
		testenv.Must(t, err)
		g := resp.Groups[0]
		if len(g.Members) == want && (g.State == "Stable" || want == 2) {
			return
		}
		last = fmt.Sprintf("%d members, %s", len(g.Members), g.State)
	}
	t.Fatalf("the group has %s; want %d members", last, want)
}

// What a group has committed is there after a kill, and is forgotten
// with its topic or with the group.
func TestCommittedOffsetsAreKept(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	create(t, b.Addr(), "test.group")
	create(t, b.Addr(), "test.gone")
	for _, topic := range []string{"test.group", "test.gone"} {
		commit(t, b.Addr(), topic, 41)
		commit(t, b.Addr(), topic, 42)
	}
	gone := kmsg.NewDeleteTopicsRequestTopic()
	gone.Topic = kmsg.StringPtr("test.gone")
	deletion := kmsg.NewPtrDeleteTopicsRequest()
	deletion.Topics, deletion.TopicNames = append(deletion.Topics, gone), []string{"test.gone"}
	if _, err := deletion.RequestWith(t.Context(), client(t, b.Addr())); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start reads what the first has compacted
		dir = crashed(t, dir)
		b = start(t, Config{Dir: dir})
		if kept, lost := committed(t, b.Addr(), "test.group"), committed(t, b.Addr(), "test.gone"); kept != 42 || lost != -1 {
			t.Errorf("committed are %d, want 42, and %d in a topic that is gone", kept, lost)
		}
	}
	forget := kmsg.NewPtrDeleteGroupsRequest()
	forget.Groups = []string{"test.group"}
	if _, err := forget.RequestWith(t.Context(), client(t, b.Addr())); err != nil {
		t.Fatal(err)
	}
	if left := committed(t, start(t, Config{Dir: crashed(t, dir)}).Addr(), "test.group"); left != -1 {
		t.Errorf("a deleted group has committed %d", left)
	}
}

func commit(t *testing.T, addr, topic string, offset int64) {
	t.Helper()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic, of.Partitions = topic, append(of.Partitions, p)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.Topics = "test.group", -1, append(req.Topics, of)
	resp, err := req.RequestWith(t.Context(), client(t, addr))
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("cannot commit: %v %+v", err, resp)
	}
}

func committed(t *testing.T, addr, topic string) int64 {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "test.group"
	old := kmsg.NewOffsetFetchRequestTopic()
	old.Topic, old.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, old)
	of := kmsg.NewOffsetFetchRequestGroupTopic()
	of.Topic, of.Partitions = topic, []int32{0}
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group, group.Topics = "test.group", append(group.Topics, of)
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(t.Context(), client(t, addr))
	if err != nil || len(resp.Groups) != 1 {
		t.Fatalf("cannot fetch what is committed: %v %+v", err, resp)
	}
	return resp.Groups[0].Topics[0].Partitions[0].Offset
}
