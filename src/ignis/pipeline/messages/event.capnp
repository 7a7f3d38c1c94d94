# The messages of the cabin pipeline, in the binary layout that existing readers know.
#
# Numbers never change and are never used again: each one has its place in the layout.
@0xd2e53b49b67bf8fe;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("ignis::pipeline::schema");

# The envelope: two data words and one pointer. The union's tag lies in bits 64..79, valid (inverted) in bit 80. Members that
# nothing here reads keep their number as a pointer of any kind.
struct Event {
  logMonoTime @0 :UInt64;      # ns, CLOCK_MONOTONIC, when the message was built
  valid @67 :Bool = true;

  union {
    other1 @1 :AnyPointer;
    other2 @2 :AnyPointer;
    other3 @3 :AnyPointer;
    other4 @4 :AnyPointer;
    other5 @5 :AnyPointer;
    other6 @6 :AnyPointer;
    other7 @7 :AnyPointer;
    other8 @8 :AnyPointer;
    other9 @9 :AnyPointer;
    other10 @10 :AnyPointer;
    other11 @11 :AnyPointer;
    other12 @12 :AnyPointer;
    other13 @13 :AnyPointer;
    other14 @14 :AnyPointer;
    other15 @15 :AnyPointer;
    other16 @16 :AnyPointer;
    other17 @17 :AnyPointer;
    other18 @18 :AnyPointer;
    extrinsicsCalibration @19 :ExtrinsicsCalibration;
    other20 @20 :AnyPointer;
    other21 @21 :AnyPointer;
    other22 @22 :AnyPointer;
    other23 @23 :AnyPointer;
    other24 @24 :AnyPointer;
    other25 @25 :AnyPointer;
    other26 @26 :AnyPointer;
    other27 @27 :AnyPointer;
    other28 @28 :AnyPointer;
    other29 @29 :AnyPointer;
    other30 @30 :AnyPointer;
    other31 @31 :AnyPointer;
    other32 @32 :AnyPointer;
    other33 @33 :AnyPointer;
    other34 @34 :AnyPointer;
    other35 @35 :AnyPointer;
    other36 @36 :AnyPointer;
    other37 @37 :AnyPointer;
    other38 @38 :AnyPointer;
    other39 @39 :AnyPointer;
    other40 @40 :AnyPointer;
    other41 @41 :AnyPointer;
    other42 @42 :AnyPointer;
    other43 @43 :AnyPointer;
    other44 @44 :AnyPointer;
    other45 @45 :AnyPointer;
    other46 @46 :AnyPointer;
    other47 @47 :AnyPointer;
    other48 @48 :AnyPointer;
    other49 @49 :AnyPointer;
    other50 @50 :AnyPointer;
    other51 @51 :AnyPointer;
    other52 @52 :AnyPointer;
    other53 @53 :AnyPointer;
    other54 @54 :AnyPointer;
    other55 @55 :AnyPointer;
    other56 @56 :AnyPointer;
    other57 @57 :AnyPointer;
    other58 @58 :AnyPointer;
    other59 @59 :AnyPointer;
    other60 @60 :AnyPointer;
    other61 @61 :AnyPointer;
    other62 @62 :AnyPointer;
    other63 @63 :AnyPointer;
    other64 @64 :AnyPointer;
    other65 @65 :AnyPointer;
    other66 @66 :AnyPointer;
    other68 @68 :AnyPointer;
    other69 @69 :AnyPointer;
    cabinCameraState @70 :AnyPointer;
    retiredDriverMonitoringState @71 :AnyPointer;
    other72 @72 :AnyPointer;
    other73 @73 :AnyPointer;
    other74 @74 :AnyPointer;
    modelV2 @75 :AnyPointer;
    other76 @76 :AnyPointer;
    other77 @77 :AnyPointer;
    other78 @78 :AnyPointer;
    other79 @79 :AnyPointer;
    other80 @80 :AnyPointer;
    other81 @81 :AnyPointer;
    other82 @82 :AnyPointer;
    other83 @83 :AnyPointer;
    other84 @84 :AnyPointer;
    other85 @85 :AnyPointer;
    other86 @86 :AnyPointer;
    other87 @87 :AnyPointer;
    other88 @88 :AnyPointer;
    other89 @89 :AnyPointer;
    other90 @90 :AnyPointer;
    other91 @91 :AnyPointer;
    driverStateV2 @92 :DriverStateV2;
    other93 @93 :AnyPointer;
    other94 @94 :AnyPointer;
    other95 @95 :AnyPointer;
    other96 @96 :AnyPointer;
    other97 @97 :AnyPointer;
    other98 @98 :AnyPointer;
    other99 @99 :AnyPointer;
    other100 @100 :AnyPointer;
    other101 @101 :AnyPointer;
    other102 @102 :AnyPointer;
    other103 @103 :AnyPointer;
    other104 @104 :AnyPointer;
    other105 @105 :AnyPointer;
    other106 @106 :AnyPointer;
    other107 @107 :AnyPointer;
    other108 @108 :AnyPointer;
    other109 @109 :AnyPointer;
    other110 @110 :AnyPointer;
    other111 @111 :AnyPointer;
    other112 @112 :AnyPointer;
    other113 @113 :AnyPointer;
    other114 @114 :AnyPointer;
    other115 @115 :AnyPointer;
    other116 @116 :AnyPointer;
    other117 @117 :AnyPointer;
    other118 @118 :AnyPointer;
    other119 @119 :AnyPointer;
    other120 @120 :AnyPointer;
    other121 @121 :AnyPointer;
    other122 @122 :AnyPointer;
    other123 @123 :AnyPointer;
    other124 @124 :AnyPointer;
    other125 @125 :AnyPointer;
    other126 @126 :AnyPointer;
    other127 @127 :AnyPointer;
    other128 @128 :AnyPointer;
    other129 @129 :AnyPointer;
    other130 @130 :AnyPointer;
    other131 @131 :AnyPointer;
    other132 @132 :AnyPointer;
    other133 @133 :AnyPointer;
    other134 @134 :AnyPointer;
    other135 @135 :AnyPointer;
    other136 @136 :AnyPointer;
    other137 @137 :AnyPointer;
    other138 @138 :AnyPointer;
    other139 @139 :AnyPointer;
    other140 @140 :AnyPointer;
    other141 @141 :AnyPointer;
    other142 @142 :AnyPointer;
    other143 @143 :AnyPointer;
    other144 @144 :AnyPointer;
    other145 @145 :AnyPointer;
    other146 @146 :AnyPointer;
    other147 @147 :AnyPointer;
    other148 @148 :AnyPointer;
    other149 @149 :AnyPointer;
    other150 @150 :AnyPointer;
    driverMonitoringState @151 :AnyPointer;
  }
}

# Three data words and three pointers.
struct DriverStateV2 {
  frameId @0 :UInt32;
  modelExecutionTime @1 :Float32;   # s, the whole run call
  retired2 @2 :Float32;
  rawPredictions @3 :Data;          # float32, little-endian; private, only by an explicit option
  retired4 @4 :Float32;
  wheelOnRightProb @5 :Float32;
  leftDriverData @6 :DriverData;
  rightDriverData @7 :DriverData;
  gpuExecutionTime @8 :Float32;     # s, warp + model + read-back by the host's clock
}

# Five data words and six pointers. All four lists have their size, or all are empty.
struct DriverData {
  faceOrientation @0 :List(Float32);      # 3: pitch, yaw, roll, rad
  faceOrientationStd @1 :List(Float32);   # 3
  facePosition @2 :List(Float32);         # 2: x, y
  facePositionStd @3 :List(Float32);      # 2
  faceProb @4 :Float32;
  leftEyeProb @5 :Float32;
  rightEyeProb @6 :Float32;
  leftBlinkProb @7 :Float32;
  rightBlinkProb @8 :Float32;
  sunglassesProb @9 :Float32;
  retired10 @10 :Float32;
  retired11 @11 :List(Float32);
  retired12 @12 :List(Float32);
  phoneProb @13 :Float32;
  sleepProb @14 :Float32;
}

struct ExtrinsicsCalibration {
  other0 @0 :List(Float32);
  other1 @1 :Int8;
  other2 @2 :Int32;
  other3 @3 :Int8;
  other4 @4 :List(Float32);
  other5 @5 :List(Float32);
  other6 @6 :List(Float32);
  rpyCalib @7 :List(Float32);         # 3: roll, pitch, yaw, rad
  rpyCalibSpread @8 :List(Float32);
  other9 @9 :Int32;
  other10 @10 :List(Float32);
  status @11 :Status;

  enum Status {
    uncalibrated @0;
    calibrated @1;
    invalid @2;
    recalibrating @3;
  }
}

# What is known about the driverStateV2 with the same frame id; sent right after it. A root of its own. Times and ages in ns.
struct DriverStateQuality {
  magic @0 :UInt32;             # "IDSQ" in bytes: nothing else on the wire tells root types apart
  frameId @1 :UInt32;
  valid @2 :Bool;               # no blocking reason
  reasons @3 :UInt32;           # bits of Reason
  timestampSof @4 :UInt64;
  timestampEof @5 :UInt64;
  receiveTime @6 :UInt64;
  publishTime @7 :UInt64;
  frameAge @8 :UInt64;          # publish - SOF
  profile @9 :Text;             # at most 31 bytes
  profileVersion @10 :UInt32;
  warpId @11 :UInt32;
  modelHash @12 :Data;          # 32 bytes
  nonFiniteHead @13 :Text;      # at most 31 bytes
  knownLeft @14 :UInt32;        # bit n: what the n-th used field of DriverData says is known
  knownRight @15 :UInt32;
  knownWheel @16 :Bool;
  calibrationAge @17 :UInt64;   # all ones: never calibrated
  receiveDuration @18 :UInt64;  # frame-in to the start of the run
  uploadDuration @19 :UInt64;
  warpDuration @20 :UInt64;
  modelDuration @21 :UInt64;
  readBackDuration @22 :UInt64;
  decodeDuration @23 :UInt64;
  queueDuration @24 :UInt64;    # by the device's own clock; 0: it has none
  deviceDuration @25 :UInt64;
  droppedFrames @26 :UInt32;    # since the last message
  writerId @27 :UInt64;         # two of them on one topic are a fault
  restarts @28 :UInt32;
  tier @29 :UInt8;              # 0: the only or the big model, 1: the fallback
}
