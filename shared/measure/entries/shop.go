package entries

// A service is one program of the imagined shop.
type service struct {
	name  string
	hosts int
	lines []line
}

// A line is what a service logs in one place of its code. Texts are
// templates (see parse).
type line struct {
	share   int // of all entries, in thousandths
	level   string
	message string
	fields  string   // of the metadata, besides those of every entry
	failure *failure // what is logged with it
}

// A failure is one mistake in a program: it is one kind of error
// however often it happens, with any ids, on any host and a few lines
// up or down between releases.
type failure struct {
	kind    string // the error's class
	message string
	frames  []string
}

const access = `"method":"GET","status":200,"ms":{ms},"bytes":{800~90000},"client":"{client}","agent":"{agent}"`

// shop has a service of each language whose stack traces Weir parses.
var shop = []service{
	{"storefront", 4, []line{
		{150, "info", "GET /products/{product} 200 in {ms} ms", `"path":"/products/{product}",` + access, nil},
		{70, "info", "GET /search?q={term} 200 in {ms} ms", `"path":"/search","term":"{term}",` + access, nil},
		{40, "info", "GET /cart 200 in {ms} ms", `"path":"/cart",` + access, nil},
		{30, "info", "POST /orders 201 in {ms} ms", `"method":"POST","path":"/orders","status":201,"ms":{ms},"order_id":{order},"client":"{client}"`, nil},
		{9, "info", "GET /products/{product} 404 in {ms} ms", `"method":"GET","path":"/products/{product}","status":404,"ms":{ms},"client":"{client}"`, nil},
		{30, "info", "cart of {user} has {1~9} items, {5~400}.{10~89} EUR", "", nil},
		{60, "debug", "cache hit for product {product}", `"cache":"products","ms":{0~2}`, nil},
		{20, "debug", "cache miss for product {product}, loaded in {ms} ms", `"cache":"products","ms":{ms}`, nil},
		{8, "warn", "slow response: GET /search?q={term} took {900~4000} ms", `"path":"/search","threshold_ms":800`, nil},
		{6, "warn", "session of {user} expired in the middle of a checkout", `"order_id":{order}`, nil},
		{4, "error", "checkout failed for order {order}", `"order_id":{order}`, &failure{
			"TypeError", "Cannot read properties of undefined (reading 'total')", []string{
				"at Cart.total (/srv/shop/src/cart.js:{41~3}:{9~8})",
				"at checkout (/srv/shop/src/checkout.js:{88~4}:20)",
				"at Layer.handle (/srv/shop/node_modules/express/router.js:95:5)",
			},
		}},
		{3, "error", "price service did not answer", "", &failure{
			"FetchError", "request to http://prices/{product} failed, reason: connect ECONNREFUSED {ip}:8080", []string{
				"at ClientRequest.<anonymous> (/srv/shop/node_modules/node-fetch/lib/index.js:1501:11)",
				"at async loadPrices (/srv/shop/src/prices.js:{23~3}:18)",
			},
		}},
	}},
	{"search", 3, []line{
		{70, "info", "query {term} took {ms} ms, {0~400} hits", `"index":"products-{1~4}","ms":{ms},"shards":8`, nil},
		{12, "info", "shard {0~16} merged {2~8} segments in {ms} ms", `"index":"products-{1~4}","segments":{2~8}`, nil},
		{20, "debug", "reindexed product {product}", `"index":"products-{1~4}","version":{order}`, nil},
		{6, "warn", "shard {0~16} is {60~35} percent full", `"index":"products-{1~4}"`, nil},
		{3, "error", "search for user {user} failed", "", &failure{
			"java.lang.NullPointerException", `Cannot invoke \"com.acme.search.Shard.lookup(String)\" because \"shard\" is null`, []string{
				"at com.acme.search.Index.query(Index.java:{87~4})",
				"at com.acme.search.SearchController.search(SearchController.java:{42~2})",
			},
		}},
		{1, "error", "index {hex} was not flushed", "", &failure{
			"java.util.concurrent.TimeoutException", "no answer from shard {0~16} within {2000~500} ms", []string{
				"at com.acme.search.Flusher.await(Flusher.java:{133~5})",
				"at com.acme.search.Flusher$$Lambda/0x00007f{hex}.run(Unknown Source)",
			},
		}},
		{1, "fatal", "out of memory: heap of {2048~64} MB is full, the process ends", `"heap_mb":2048`, &failure{
			"java.lang.OutOfMemoryError", "Java heap space", []string{
				"at com.acme.search.Segment.load(Segment.java:{211~3})",
				"at com.acme.search.Merger.run(Merger.java:{64~2})",
			},
		}},
	}},
	{"billing", 2, []line{
		{35, "info", "invoice {order} rendered in {ms} ms", `"order_id":{order},"ms":{ms},"pages":{1~3}`, nil},
		{25, "debug", "SELECT invoices WHERE customer = {user} returned {1~30} rows in {ms} ms", `"ms":{ms},"pool":"billing-ro"`, nil},
		{12, "warn", "slow query: SELECT invoices JOIN orders took {500~4000} ms", `"pool":"billing-ro","rows":{100~9000}`, nil},
		{4, "warn", "exchange rates are {2~9} hours old", "", nil},
		{2, "error", "cannot render invoice {order}", `"order_id":{order}`, &failure{
			"KeyError", "'vat_{hex}'", []string{
				`File \"/app/billing/api.py\", line {61~4}, in render_invoice`,
				`File \"/app/billing/invoice.py\", line {118~5}, in totals`,
				`File \"/app/billing/tax.py\", line {17~2}, in rate_for`,
			},
		}},
		{2, "error", "database is slow", "", &failure{
			"psycopg.errors.QueryCanceled", "canceling statement due to statement timeout after {5000~900} ms", []string{
				`File \"/app/billing/store.py\", line {204~6}, in fetch_open_invoices`,
				`File \"/usr/lib/python3.12/site-packages/psycopg/cursor.py\", line 97, in execute`,
			},
		}},
	}},
	{"payments", 2, []line{
		{45, "info", "payment of order {order} authorised in {ms} ms", `"order_id":{order},"ms":{ms},"provider":"{bank}","amount":{5~900}.{10~89}`, nil},
		{25, "info", "payment of order {order} captured", `"order_id":{order},"provider":"{bank}"`, nil},
		{10, "warn", "payment of order {order} declined: insufficient funds", `"order_id":{order},"provider":"{bank}","code":51`, nil},
		{8, "warn", "bank {bank} answers slowly: {800~3000} ms, retry {1~3} of 3", `"provider":"{bank}"`, nil},
		{2, "error", "capture of order {order} failed", `"order_id":{order}`, &failure{
			"System.InvalidOperationException", "Sequence contains no elements", []string{
				"at System.Linq.ThrowHelper.ThrowNoElementsException()",
				"at Acme.Payments.Ledger.Latest(Guid account) in /src/Acme.Payments/Ledger.cs:line {133~5}",
			},
		}},
		{3, "error", "bank did not confirm the payment of order {order}", `"order_id":{order}`, &failure{
			"System.Net.Http.HttpRequestException", "Connection refused ({ip}:443)", []string{
				"at Acme.Payments.BankClient.Confirm() in /src/BankClient.cs:line {48~2}",
				"at Acme.Payments.Gateway.Settle() in /src/Gateway.cs:line {91~3}",
			},
		}},
	}},
	{"courier", 3, []line{
		{40, "info", "parcel of order {order} handed over at depot {0~40}", `"order_id":{order},"weight_g":{90~9000},"vehicle":"van"`, nil},
		{30, "info", "route computed in {ms} ms over {3~20} hops", `"ms":{ms},"depot":{0~40}`, nil},
		{9, "warn", "depot {0~40} did not answer, retry {1~3} of 3 in {100~800} ms", "", nil},
		{2, "error", "worker {0~15} died", "", &failure{
			"runtime.boundsError", "runtime error: index out of range [{7~9}] with length 7", []string{
				"main.(*Pool).take(0xc000{hex}, 0x{hex})", `\t/src/courier/pool.go:{71~3} +0x1d8`,
				"main.(*Worker).run(0xc000{hex})", `\t/src/courier/worker.go:{29~2} +0x9c`,
			},
		}},
		{2, "error", "parcel of order {order} cannot be routed", `"order_id":{order}`, &failure{
			"*courier.RouteError", "no route from {ip} to depot {0~40}", []string{
				"acme.dev/courier/route.Find(...)", `\t/src/courier/route/find.go:{112~5}`,
				"acme.dev/courier.(*Service).Dispatch(0xc000{hex})", `\t/src/courier/service.go:{58~3} +0x44c`,
			},
		}},
	}},
	{"mailer", 2, []line{
		{55, "info", "mail to {user} delivered to relay {ip} in {ms} ms", `"template":"order_confirmation","ms":{ms},"order_id":{order}`, nil},
		{20, "debug", "template order_confirmation rendered for {user} in {ms} ms", `"ms":{ms}`, nil},
		{8, "warn", "relay {ip} throttles: {1~20} mails wait", "", nil},
		{2, "error", "mail of order {order} was not sent", `"order_id":{order}`, &failure{
			"NoMethodError", "undefined method 'display_name' for nil", []string{
				"/srv/mailer/app/models/recipient.rb:{31~2}:in 'greeting'",
				"/srv/mailer/app/mailers/order_mailer.rb:{18~3}:in 'confirmation'",
			},
		}},
		{2, "error", "relay refused the mail of order {order}", `"order_id":{order}`, &failure{
			"Net::SMTPServerBusy", "451 4.7.1 Try again later (queue {hex})", []string{
				"/srv/mailer/lib/relay.rb:{77~4}:in 'deliver'",
				"/srv/mailer/app/jobs/deliver_job.rb:{12~1}:in 'perform'",
			},
		}},
	}},
	{"backoffice", 1, []line{
		{20, "info", "report {1~90} opened by {user} in {ms} ms", `"ms":{ms}`, nil},
		{18, "info", "GET /orders?page={1~30} 200 in {ms} ms", `"method":"GET","path":"/orders","status":200,"ms":{ms}`, nil},
		{4, "warn", "deprecated function called by report {1~90}", "", nil},
		{1, "error", "legacy report {1~90} failed", "", &failure{
			"PDOException", "SQLSTATE[HY000] [2002] Connection refused", []string{
				"#0 /var/www/backoffice/src/Orders.php({57~3}): PDO->__construct('mysql:host={ip}', 'report')",
				`#1 /var/www/backoffice/src/Report.php({102~4}): Acme\\Orders->open()`, "#2 {main}",
			},
		}},
		{1, "error", "customer {user} cannot be shown", "", &failure{
			"TypeError", `Acme\\Customer::format(): Argument #1 ($name) must be of type string, null given`, []string{
				`#0 /var/www/backoffice/src/Customer.php({33~2}): Acme\\Customer->format(NULL)`, "#1 {main}",
			},
		}},
	}},
}

// What a template picks from.
var (
	agents = []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/130.0.0.0 Safari/537.36", "Mozilla/5.0 (X11; Linux x86_64) Firefox/132.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Mobile/15E148 Safari/604.1", "okhttp/4.12.0", "ShopApp/7.3.1 (Android 15)",
	}
	banks = []string{"northbank", "cardhouse", "paysure", "unionpay", "giro24"}
	terms = []string{
		"tent", "lantern", "boots", "kettle", "rope", "compass", "jacket", "stove", "hammock", "backpack", "gloves", "thermos", "whistle", "poncho",
	}
)
