package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// ObjectSpec is an object storage workload: stages run one after another, the works of a stage run in parallel,
// and each work mixes operations by ratio. The instances that one trigger creates share the workers and go through
// the stages together. Stages before the first measured stage run before the barrier; the first measured stage
// starts at the barrier.
type ObjectSpec struct {
	// storage is the object store of all works that do not name another.
	// +required
	Storage ObjectStorage `json:"storage"`
	// stages run in this order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Stages []ObjectStage `json:"stages"`
	// logOperations has each instance write each operation to a Parquet file in the raw output of its bundle.
	// +optional
	LogOperations bool `json:"logOperations,omitempty"`
}

// ObjectStorage is an object store.
//
// +kubebuilder:validation:ExactlyOneOf=s3Spec;swiftSpec;fileSpec;nullSpec;otherSpec
type ObjectStorage struct {
	// s3Spec is a store with the S3 API.
	// +optional
	S3Spec *S3Spec `json:"s3Spec,omitempty"`
	// swiftSpec is OpenStack Swift.
	// +optional
	SwiftSpec *SwiftSpec `json:"swiftSpec,omitempty"`
	// fileSpec stores each object as a file on a volume that the instance creates for itself.
	// +optional
	FileSpec *ObjectFileSpec `json:"fileSpec,omitempty"`
	// nullSpec stores nothing and answers at once, within the client process.
	// +optional
	NullSpec *ObjectNullSpec `json:"nullSpec,omitempty"`
	// otherSpec is a store of a kind that has no field of its own, by its settings.
	// +optional
	OtherSpec *ObjectOtherSpec `json:"otherSpec,omitempty"`
	// credentials for s3Spec or swiftSpec. Without them engine local reads the environment (AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, OS_PASSWORD, OS_AUTH_TOKEN) and engine kubernetes uses none.
	// +optional
	Credentials *ObjectCredentials `json:"credentials,omitempty"`
}

// ObjectCredentials locates credentials; it never contains them.
//
// +kubebuilder:validation:ExactlyOneOf=secretName;file
type ObjectCredentials struct {
	// secretName is a Secret in the namespace of the run (kubernetes) with the keys accesskey, secretkey and
	// sessiontoken, or password or token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// file is the absolute path of a file with KEY=VALUE lines and the same keys (local). Only its owner may have
	// read permission.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	File string `json:"file,omitempty"`
}

// HTTPEndpoint has the settings of HTTP connections to a store.
type HTTPEndpoint struct {
	// endpoints are the URLs of several endpoints of the store, which have the same containers. The results have the
	// figures of each. For swiftSpec they are proxy servers, without a path; they replace the host of the storage URL.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Pattern=`^https?://[^ ,]+$`
	// +kubebuilder:validation:items:MaxLength=2048
	Endpoints []string `json:"endpoints,omitempty"`
	// addresses selects whether connections to a name with several addresses, such as that of a headless Service, go
	// to any of them, or whether each address is an endpoint. A name is resolved when a work begins.
	// +optional
	// +kubebuilder:validation:Enum=any;all
	Addresses string `json:"addresses,omitempty"`
	// spread is what is spread over several endpoints in turn: workers (the default) or operations (request). All
	// requests of an operation go to one endpoint.
	// +optional
	// +kubebuilder:validation:Enum=worker;request
	Spread string `json:"spread,omitempty"`
	// onEndpointFailure is what happens with an endpoint that does not serve: operations still go to it (keep, the
	// default), or to the next one for the rest of the run (leaveOut) or until one operation a second, which tries
	// it, is served again (leaveOutWhileDown). An endpoint is down after at least three operations in a row, over at
	// least a second, without an answer or with the status 502, 503 or 504.
	// +optional
	// +kubebuilder:validation:Enum=keep;leaveOut;leaveOutWhileDown
	OnEndpointFailure string `json:"onEndpointFailure,omitempty"`
	// timeout is the maximum time without receiving data.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// caFile has trusted certificates in PEM format: with engine local a file of this machine, with kubernetes a
	// file of the pod, where the Secret of the credentials is mounted at /credentials.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	CAFile string `json:"caFile,omitempty"`
	// insecureSkipVerify accepts any server certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// proxy is an HTTP proxy for all requests, as http://HOST:PORT. Requests to an https endpoint use a tunnel
	// through the proxy. Without it, engine local uses HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment.
	// +optional
	// +kubebuilder:validation:Pattern=`^http://[^ /@]+:[0-9]+$`
	// +kubebuilder:validation:MaxLength=2048
	Proxy string `json:"proxy,omitempty"`
	// addressFamily selects the addresses of a host name that has several: any, ipv4 or ipv6.
	// +optional
	// +kubebuilder:validation:Enum=any;ipv4;ipv6
	AddressFamily string `json:"addressFamily,omitempty"`
	// sourceAddresses are IP addresses of the machine of the workers that connections come from, by turns of the
	// workers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	SourceAddresses []string `json:"sourceAddresses,omitempty"`
	// httpVersion of the requests, 1.1 or 2. Version 2 costs the client more CPU time for each request.
	// +optional
	// +kubebuilder:validation:Enum="1.1";"2"
	HTTPVersion string `json:"httpVersion,omitempty"`
}

// S3Spec is a store with the S3 API.
//
// +kubebuilder:validation:XValidation:rule="has(self.endpoint) != has(self.endpoints)",message="give endpoint, or endpoints"
type S3Spec struct {
	// endpoint is the URL of the store.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`
	// region that requests are signed for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// addressing is the place of the bucket in a URL: in the path, or in front of the host name of the endpoint
	// (virtualHost). Connections always go to the address of the endpoint, and the certificate must be valid for
	// the endpoint.
	// +optional
	// +kubebuilder:validation:Enum=path;virtualHost
	Addressing string `json:"addressing,omitempty"`
	// signature is the signature version, v4 or v2, or presigned: version 4 in the URL of each request.
	// +optional
	// +kubebuilder:validation:Enum=v4;v2;presigned
	Signature string `json:"signature,omitempty"`
	// payload selects whether bodies are signed too.
	// +optional
	// +kubebuilder:validation:Enum=unsigned;signed
	Payload      string `json:"payload,omitempty"`
	HTTPEndpoint `json:",inline"`
}

// SwiftSpec is OpenStack Swift.
//
// +kubebuilder:validation:XValidation:rule="has(self.authURL) || has(self.storageURL)",message="give authURL, or storageURL with a token among the credentials"
// +kubebuilder:validation:XValidation:rule="has(self.authURL) == has(self.username)",message="authURL and username belong together"
// +kubebuilder:validation:XValidation:rule="has(self.authURL) || self.auth == 'tempauth' && !has(self.project) && !has(self.userDomain) && !has(self.projectDomain) && !has(self.region) && !has(self.interface)",message="auth, project, userDomain, projectDomain, region and interface are for an authURL"
type SwiftSpec struct {
	// authURL is the URL of the authentication service: TempAuth (v1) or Keystone. Without it the credentials
	// contain the token itself, which is not renewed.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	AuthURL string `json:"authURL,omitempty"`
	// storageURL is the URL of the account, such as http://HOST:PORT/v1/AUTH_NAME. With authURL it replaces the
	// URL that the authentication service returns.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	StorageURL string `json:"storageURL,omitempty"`
	// auth is the kind of authentication. keystone finds the version from authURL.
	// +optional
	// +kubebuilder:validation:Enum=tempauth;keystone;keystonev2;keystonev3
	// +kubebuilder:default=tempauth
	Auth string `json:"auth,omitempty"`
	// username to authenticate as.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string `json:"username,omitempty"`
	// project of the user (keystone).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Project string `json:"project,omitempty"`
	// userDomain of the user (keystonev3).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UserDomain string `json:"userDomain,omitempty"`
	// projectDomain of the project (keystonev3).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ProjectDomain string `json:"projectDomain,omitempty"`
	// region of the store (keystone).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// interface of the store (keystone): public, internal or admin.
	// +optional
	// +kubebuilder:validation:Enum=public;internal;admin
	Interface string `json:"interface,omitempty"`
	// policy is the storage policy of created containers.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Policy       string `json:"policy,omitempty"`
	HTTPEndpoint `json:",inline"`
}

// ObjectFileSpec stores each object as a file.
type ObjectFileSpec struct {
	// storageClass of the volume. Without it the platform's default class is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// size of the volume.
	// +optional
	// +kubebuilder:default="1Gi"
	Size *resource.Quantity `json:"size,omitempty"`
	// sync selects whether a write flushes the file to the volume before it ends.
	// +optional
	// +kubebuilder:validation:Enum=none;data
	Sync string `json:"sync,omitempty"`
}

// ObjectNullSpec is a store that stores nothing.
type ObjectNullSpec struct {
	// size of every object that is read.
	// +optional
	// +kubebuilder:default="4Ki"
	Size *resource.Quantity `json:"size,omitempty"`
}

// ObjectOtherSpec is a store of a kind that has no field of its own.
type ObjectOtherSpec struct {
	// type of storage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`
	// settings of that type, without credentials.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Settings map[string]string `json:"settings,omitempty"`
}

// ObjectStage runs its works in parallel and ends when all of them have ended.
type ObjectStage struct {
	// name of the stage.
	// +required
	Name Name `json:"name"`
	// closureDelay is the idle time after the works have ended.
	// +optional
	ClosureDelay *Duration `json:"closureDelay,omitempty"`
	// works of the stage. A stage without works is idle for its closureDelay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Works []ObjectWork `json:"works,omitempty"`
}

// ObjectWork is the work of a number of parallel workers. A work of type normal mixes operations. Works of other
// types process everything that their selectors cover once: init creates containers, prepare writes objects,
// cleanup deletes objects, dispose removes containers.
type ObjectWork struct {
	// type of the work.
	// +optional
	// +kubebuilder:validation:Enum=normal;init;prepare;cleanup;dispose
	// +kubebuilder:default=normal
	Type string `json:"type,omitempty"`
	// name of the work; by default its type.
	// +optional
	Name Name `json:"name,omitempty"`
	// workers is the number of workers of all instances together.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Workers int32 `json:"workers"`
	// interval is the length of a slice of the histograms.
	// +optional
	// +kubebuilder:default="5s"
	Interval *Duration `json:"interval,omitempty"`
	// rampUp is the time that operations run before they are measured.
	// +optional
	RampUp *Duration `json:"rampUp,omitempty"`
	// runtime is the measured time.
	// +optional
	Runtime *Duration `json:"runtime,omitempty"`
	// rampDown is the time that operations run after the measured time.
	// +optional
	RampDown *Duration `json:"rampDown,omitempty"`
	// untilSteady ends the work when the throughput of its last five intervals is steady, by the rule of a Study's
	// steadyState: their range is at most 20 % of their mean, and the slope of the line through them 10 %. runtime
	// bounds it. It needs one instance and a closed loop.
	// +optional
	UntilSteady bool `json:"untilSteady,omitempty"`
	// totalOps ends the work after this number of operations of all workers.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalOps *int64 `json:"totalOps,omitempty"`
	// totalBytes ends the work after this number of bytes transferred by all workers.
	// +optional
	TotalBytes *resource.Quantity `json:"totalBytes,omitempty"`
	// maxFailuresPerMillion is the accepted number of failures per million operations. More failures fail the
	// instance. By default it is 200000 for works of type normal and 0 for all others.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxFailuresPerMillion *int32 `json:"maxFailuresPerMillion,omitempty"`
	// rate makes the loop open: operations start on a schedule, independent of earlier operations, such as
	// poisson(500) or constant(500) (per second) or burst(SIZE,INTERVAL). workers is then the maximum number of
	// operations in flight.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Rate string `json:"rate,omitempty"`
	// storage is the object store of this work.
	// +optional
	Storage *ObjectStorage `json:"storage,omitempty"`
	// operations of a work of type normal.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Operations   []ObjectOperation `json:"operations,omitempty"`
	ObjectTarget `json:",inline"`
}

// ObjectOperation is one operation in the mix of a work.
type ObjectOperation struct {
	// type of the operation.
	// +required
	// +kubebuilder:validation:Enum=read;write;multipart;abort;filewrite;head;list;delete;copy;deleteobjects;listversions;readversion;deleteversion;puttags;gettags;deletetags;putretention;getretention;puthold;gethold
	Type string `json:"type"`
	// name of the operation in metrics and tables; by default its type, with a number if several operations have
	// that type.
	// +optional
	Name Name `json:"name,omitempty"`
	// ratio is the percentage of operations of this kind. The ratios of a work add up to 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	Ratio        *int32 `json:"ratio,omitempty"`
	ObjectTarget `json:",inline"`
	// container is the whole name of the container of an operation that reads, in place of containers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Container string `json:"container,omitempty"`
	// keys are objects that exist already, in place of objects. fileSelection is the order in which they are chosen.
	// +optional
	Keys *ObjectKeys `json:"keys,omitempty"`
	// ranges is the number of ranges of a read with length and within, all in one request.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Ranges *int32 `json:"ranges,omitempty"`
	// batch is the number of objects that a deleteobjects deletes: from the selected one on, up to the end of the
	// range of objects. By default it is 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Batch *int32 `json:"batch,omitempty"`
	// retention is how long a putretention retains an object, in governance mode; by default 1m.
	// +optional
	Retention *Duration `json:"retention,omitempty"`
	// delimiter of a list: keys that have it behind the prefix count as one for each common prefix.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Delimiter string `json:"delimiter,omitempty"`
	// allPages makes a list go on until there are no more keys, maxKeys at a time.
	// +optional
	AllPages bool `json:"allPages,omitempty"`
	// verify checks every byte that is read.
	// +optional
	Verify bool `json:"verify,omitempty"`
	// length reads a range of this many bytes, at an offset that is a multiple of 4Ki.
	// +optional
	Length *resource.Quantity `json:"length,omitempty"`
	// within is the size of the objects that ranges are read from.
	// +optional
	Within *resource.Quantity `json:"within,omitempty"`
	// files is the directory of the files that a filewrite sends: with engine local a directory of this machine,
	// with kubernetes one of the pod.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	Files string `json:"files,omitempty"`
	// fileSelection is the order in which files, or keys, are chosen.
	// +optional
	// +kubebuilder:validation:Enum=random;inOrder
	FileSelection string `json:"fileSelection,omitempty"`
	// maxKeys limits the number of keys in the response of a list.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxKeys *int32 `json:"maxKeys,omitempty"`
	// copyPrefix is added in front of the object's name to form the name of the copy.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	CopyPrefix string `json:"copyPrefix,omitempty"`
}

// ObjectKeys names objects that exist already in the container of an operation.
//
// +kubebuilder:validation:ExactlyOneOf=file;prefix
type ObjectKeys struct {
	// file with a key in each line or, if its name ends in .csv or .csv.gz, an inventory of S3, of which the rows of
	// the container count: with engine local a file of this machine, with kubernetes one of the pod.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	File string `json:"file,omitempty"`
	// prefix of the keys, which are listed before the work begins. An empty prefix has all of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Prefix *string `json:"prefix,omitempty"`
}

// ObjectTarget selects the containers and objects of operations, and the data that they write.
type ObjectTarget struct {
	// containers selects container numbers, from 1: c(n), u(a,b), r(a,b), s(a,b), h(lo|hi|weight,…),
	// zipf(a,b,exponent) or hot(a,b,keys%,draws%).
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Containers string `json:"containers,omitempty"`
	// objects selects object numbers, with the same selectors.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Objects string `json:"objects,omitempty"`
	// sizes selects sizes, with a unit after the selector: c(64)KB, u(1,8)MiB.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Sizes string `json:"sizes,omitempty"`
	// division selects what is divided among the workers.
	// +optional
	// +kubebuilder:validation:Enum=none;container;object
	Division string `json:"division,omitempty"`
	// containerPrefix is the part of a container's name before its number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:default=mycontainers
	ContainerPrefix string `json:"containerPrefix,omitempty"`
	// containerSuffix is the part of a container's name after its number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContainerSuffix string `json:"containerSuffix,omitempty"`
	// objectPrefix is the part of an object's name before its number; by default myobjects. For a list it is the
	// requested prefix.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ObjectPrefix *string `json:"objectPrefix,omitempty"`
	// objectSuffix is the part of an object's name after its number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ObjectSuffix string `json:"objectSuffix,omitempty"`
	// content of written objects.
	// +optional
	// +kubebuilder:validation:Enum=random;zero
	Content string `json:"content,omitempty"`
	// compressible is the percentage by which written objects can be compressed, in each block of 4Ki.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Compressible *int32 `json:"compressible,omitempty"`
	// dedupable is the percentage of written blocks of 4Ki that are stored already, in other objects of the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Dedupable *int32 `json:"dedupable,omitempty"`
	// hashPrefix is the number of hexadecimal digits of a hash that names of objects begin with, so that names spread
	// over the partitions of a store. All operations of the objects need the same.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	HashPrefix *int32 `json:"hashPrefix,omitempty"`
	// chunked sends bodies with chunked transfer encoding (swift).
	// +optional
	Chunked bool `json:"chunked,omitempty"`
	// partSize is the size of the parts of a multipart upload. With it a work of type prepare writes its objects in
	// parts, and a copy is made in parts by the server, as objects above 5 GB need it.
	// +optional
	PartSize *resource.Quantity `json:"partSize,omitempty"`
	// partConcurrency is the number of parts of an object that are in flight at the same time, each on a connection
	// of its own; by default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	PartConcurrency *int32 `json:"partConcurrency,omitempty"`
	// storageClass of written objects (s3).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	StorageClass string `json:"storageClass,omitempty"`
	// encryption by the server (s3): with a key of the server (sse-s3), or with one that each request has (sse-c).
	// +optional
	// +kubebuilder:validation:Enum=sse-s3;sse-c
	Encryption string `json:"encryption,omitempty"`
	// checksum that a write sends, and that a read of a whole object compares (s3).
	// +optional
	// +kubebuilder:validation:Enum=crc32c;crc64nvme;sha256
	Checksum string `json:"checksum,omitempty"`
	// ifNoneMatch makes a write succeed only if the object does not exist.
	// +optional
	IfNoneMatch bool `json:"ifNoneMatch,omitempty"`
	// versioning is enabled for the containers that a work of type init creates.
	// +optional
	Versioning bool `json:"versioning,omitempty"`
	// objectLock is enabled for the containers that a work of type init creates (s3); it includes versioning.
	// +optional
	ObjectLock bool `json:"objectLock,omitempty"`
	// checks are consistency checks after each successful operation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=readAfterWrite;listAfterWrite;readAfterDelete;listAfterDelete
	Checks []string `json:"checks,omitempty"`
	// checkWithin is how long an inconsistent store is queried again.
	// +optional
	CheckWithin *Duration `json:"checkWithin,omitempty"`
}
