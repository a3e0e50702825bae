package loadgen

// A service is one program of the imagined shop.
type service struct {
	name     string
	hosts    int
	routine  []string // its lines when all is well; templates
	worries  []string // its warnings; templates
	failures []failure
}

var services = []service{
	{"storefront", 4, []string{
		"GET /products/{id} answered 200 in {ms} ms", "cart of {user} has {1~9} items", "POST /checkout answered 201 in {ms} ms",
	}, []string{"GET /search answered 200 in {900~4000} ms, which is slow", "session of {user} expired in the middle of a checkout"}, javaScript},
	{"billing", 2, []string{
		"invoice {id} rendered in {ms} ms", "payment reminder for invoice {id} queued", "exported {20~300} invoices",
	}, []string{"exchange rates are {2~9} hours old"}, python},
	{"search", 3, []string{
		"query took {ms} ms, {0~400} hits", "shard {0~16} merged {2~8} segments", "reindexed product {id}",
	}, []string{"shard {0~16} is {60~35} percent full"}, java},
	{"courier", 3, []string{
		"parcel {id} handed over at depot {0~40}", "route computed in {ms} ms over {3~20} hops",
	}, []string{"depot {0~40} did not answer, retry {1~3} of 3"}, golang},
	{"mailer", 2, []string{
		"mail {id} delivered to relay {ip} in {ms} ms", "template order_confirmation rendered",
	}, []string{"relay {ip} throttles: {1~20} mails wait"}, ruby},
	{"backoffice", 1, []string{
		"report {id} opened by {user}", "GET /orders?page={1~30} answered 200 in {ms} ms",
	}, []string{"deprecated function called by report {id}"}, php},
	{"payments", 2, []string{
		"payment {id} authorised in {ms} ms", "payment {id} captured", "settled {10~200} payments",
	}, []string{"bank answers slowly: {800~3000} ms"}, dotNet},
}
