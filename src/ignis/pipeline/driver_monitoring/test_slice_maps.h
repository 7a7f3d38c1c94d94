#pragma once

#include <string_view>

/// Slice maps as Python writes them: base64.encodebytes(pickle.dumps(map, protocol)). Linked into tests only.
namespace ignis::pipeline::testing {

// The layout of section 5.1 of the contract, protocol 4.
inline constexpr std::string_view kSliceMap553 =
    "gASVewIAAAAAAAB9lCiMDmZhY2VfZGVzY3NfbGhklIwIYnVpbHRpbnOUjAVzbGljZZSTlEsASwxO\n"
    "h5RSlIwNZmFjZV9wcm9iX2xoZJRoBEsMSw1Oh5RSlIwRbGVmdF9leWVfcHJvYl9saGSUaARLDUsO\n"
    "ToeUUpSMEnJpZ2h0X2V5ZV9wcm9iX2xoZJRoBEsOSw9Oh5RSlIwTbGVmdF9ibGlua19wcm9iX2xo\n"
    "ZJRoBEsPSxBOh5RSlIwUcmlnaHRfYmxpbmtfcHJvYl9saGSUaARLEEsRToeUUpSME3N1bmdsYXNz\n"
    "ZXNfcHJvYl9saGSUaARLEUsSToeUUpSMFHVzaW5nX3Bob25lX3Byb2JfbGhklGgESxJLE06HlFKU\n"
    "jA5zbGVlcF9wcm9iX2xoZJRoBEsTSxROh5RSlIwOZmFjZV9kZXNjc19yaGSUaARLFEsgToeUUpSM\n"
    "DWZhY2VfcHJvYl9yaGSUaARLIEshToeUUpSMEWxlZnRfZXllX3Byb2JfcmhklGgESyFLIk6HlFKU\n"
    "jBJyaWdodF9leWVfcHJvYl9yaGSUaARLIksjToeUUpSME2xlZnRfYmxpbmtfcHJvYl9yaGSUaARL\n"
    "I0skToeUUpSMFHJpZ2h0X2JsaW5rX3Byb2JfcmhklGgESyRLJU6HlFKUjBNzdW5nbGFzc2VzX3By\n"
    "b2JfcmhklGgESyVLJk6HlFKUjBR1c2luZ19waG9uZV9wcm9iX3JoZJRoBEsmSydOh5RSlIwOc2xl\n"
    "ZXBfcHJvYl9yaGSUaARLJ0soToeUUpSMDndoZWVsX29uX3JpZ2h0lGgESyhLKU6HlFKUjAhmZWF0\n"
    "dXJlc5RoBEspTSkCToeUUpR1Lg==\n";

// {"a": slice(0, 3), "b": slice(3, 70000), "tail": slice(-2, None)} in each protocol.
inline constexpr std::string_view kSmallMap0 =
    "KGRwMApWYQpwMQpjX19idWlsdGluX18Kc2xpY2UKcDIKKEkwCkkzCk50cDMKUnA0CnNWYgpwNQpn\n"
    "MgooSTMKSTcwMDAwCk50cDYKUnA3CnNWdGFpbApwOApnMgooSS0yCk5OdHA5ClJwMTAKcy4=\n";
inline constexpr std::string_view kSmallMap1 =
    "fXEAKFgBAAAAYXEBY19fYnVpbHRpbl9fCnNsaWNlCnECKEsASwNOdHEDUnEEWAEAAABicQVoAihL\n"
    "A0pwEQEATnRxBlJxB1gEAAAAdGFpbHEIaAIoSv7///9OTnRxCVJxCnUu\n";
inline constexpr std::string_view kSmallMap2 =
    "gAJ9cQAoWAEAAABhcQFjX19idWlsdGluX18Kc2xpY2UKcQJLAEsDTodxA1JxBFgBAAAAYnEFaAJL\n"
    "A0pwEQEATodxBlJxB1gEAAAAdGFpbHEIaAJK/v///05Oh3EJUnEKdS4=\n";
inline constexpr std::string_view kSmallMap3 =
    "gAN9cQAoWAEAAABhcQFjYnVpbHRpbnMKc2xpY2UKcQJLAEsDTodxA1JxBFgBAAAAYnEFaAJLA0pw\n"
    "EQEATodxBlJxB1gEAAAAdGFpbHEIaAJK/v///05Oh3EJUnEKdS4=\n";
inline constexpr std::string_view kSmallMap4 =
    "gASVTQAAAAAAAAB9lCiMAWGUjAhidWlsdGluc5SMBXNsaWNllJOUSwBLA06HlFKUjAFilGgESwNK\n"
    "cBEBAE6HlFKUjAR0YWlslGgESv7///9OToeUUpR1Lg==\n";
inline constexpr std::string_view kSmallMap5 =
    "gAWVTQAAAAAAAAB9lCiMAWGUjAhidWlsdGluc5SMBXNsaWNllJOUSwBLA06HlFKUjAFilGgESwNK\n"
    "cBEBAE6HlFKUjAR0YWlslGgESv7///9OToeUUpR1Lg==\n";
inline constexpr std::string_view kSmallMaps[] = {kSmallMap0, kSmallMap1, kSmallMap2,
                                                  kSmallMap3, kSmallMap4, kSmallMap5};

// The layout of 5.1 with one entry changed: face_descs_lhd to [0, 9), features to [41, 560), left_eye_prob_rhd to [32, 33).
inline constexpr std::string_view kShortDescriptorMap =
    "gASVewIAAAAAAAB9lCiMDmZhY2VfZGVzY3NfbGhklIwIYnVpbHRpbnOUjAVzbGljZZSTlEsASwlO\n"
    "h5RSlIwNZmFjZV9wcm9iX2xoZJRoBEsMSw1Oh5RSlIwRbGVmdF9leWVfcHJvYl9saGSUaARLDUsO\n"
    "ToeUUpSMEnJpZ2h0X2V5ZV9wcm9iX2xoZJRoBEsOSw9Oh5RSlIwTbGVmdF9ibGlua19wcm9iX2xo\n"
    "ZJRoBEsPSxBOh5RSlIwUcmlnaHRfYmxpbmtfcHJvYl9saGSUaARLEEsRToeUUpSME3N1bmdsYXNz\n"
    "ZXNfcHJvYl9saGSUaARLEUsSToeUUpSMFHVzaW5nX3Bob25lX3Byb2JfbGhklGgESxJLE06HlFKU\n"
    "jA5zbGVlcF9wcm9iX2xoZJRoBEsTSxROh5RSlIwOZmFjZV9kZXNjc19yaGSUaARLFEsgToeUUpSM\n"
    "DWZhY2VfcHJvYl9yaGSUaARLIEshToeUUpSMEWxlZnRfZXllX3Byb2JfcmhklGgESyFLIk6HlFKU\n"
    "jBJyaWdodF9leWVfcHJvYl9yaGSUaARLIksjToeUUpSME2xlZnRfYmxpbmtfcHJvYl9yaGSUaARL\n"
    "I0skToeUUpSMFHJpZ2h0X2JsaW5rX3Byb2JfcmhklGgESyRLJU6HlFKUjBNzdW5nbGFzc2VzX3By\n"
    "b2JfcmhklGgESyVLJk6HlFKUjBR1c2luZ19waG9uZV9wcm9iX3JoZJRoBEsmSydOh5RSlIwOc2xl\n"
    "ZXBfcHJvYl9yaGSUaARLJ0soToeUUpSMDndoZWVsX29uX3JpZ2h0lGgESyhLKU6HlFKUjAhmZWF0\n"
    "dXJlc5RoBEspTSkCToeUUpR1Lg==\n";
inline constexpr std::string_view kOverLongMap =
    "gASVewIAAAAAAAB9lCiMDmZhY2VfZGVzY3NfbGhklIwIYnVpbHRpbnOUjAVzbGljZZSTlEsASwxO\n"
    "h5RSlIwNZmFjZV9wcm9iX2xoZJRoBEsMSw1Oh5RSlIwRbGVmdF9leWVfcHJvYl9saGSUaARLDUsO\n"
    "ToeUUpSMEnJpZ2h0X2V5ZV9wcm9iX2xoZJRoBEsOSw9Oh5RSlIwTbGVmdF9ibGlua19wcm9iX2xo\n"
    "ZJRoBEsPSxBOh5RSlIwUcmlnaHRfYmxpbmtfcHJvYl9saGSUaARLEEsRToeUUpSME3N1bmdsYXNz\n"
    "ZXNfcHJvYl9saGSUaARLEUsSToeUUpSMFHVzaW5nX3Bob25lX3Byb2JfbGhklGgESxJLE06HlFKU\n"
    "jA5zbGVlcF9wcm9iX2xoZJRoBEsTSxROh5RSlIwOZmFjZV9kZXNjc19yaGSUaARLFEsgToeUUpSM\n"
    "DWZhY2VfcHJvYl9yaGSUaARLIEshToeUUpSMEWxlZnRfZXllX3Byb2JfcmhklGgESyFLIk6HlFKU\n"
    "jBJyaWdodF9leWVfcHJvYl9yaGSUaARLIksjToeUUpSME2xlZnRfYmxpbmtfcHJvYl9yaGSUaARL\n"
    "I0skToeUUpSMFHJpZ2h0X2JsaW5rX3Byb2JfcmhklGgESyRLJU6HlFKUjBNzdW5nbGFzc2VzX3By\n"
    "b2JfcmhklGgESyVLJk6HlFKUjBR1c2luZ19waG9uZV9wcm9iX3JoZJRoBEsmSydOh5RSlIwOc2xl\n"
    "ZXBfcHJvYl9yaGSUaARLJ0soToeUUpSMDndoZWVsX29uX3JpZ2h0lGgESyhLKU6HlFKUjAhmZWF0\n"
    "dXJlc5RoBEspTTACToeUUpR1Lg==\n";
inline constexpr std::string_view kOverlappingMap =
    "gASVewIAAAAAAAB9lCiMDmZhY2VfZGVzY3NfbGhklIwIYnVpbHRpbnOUjAVzbGljZZSTlEsASwxO\n"
    "h5RSlIwNZmFjZV9wcm9iX2xoZJRoBEsMSw1Oh5RSlIwRbGVmdF9leWVfcHJvYl9saGSUaARLDUsO\n"
    "ToeUUpSMEnJpZ2h0X2V5ZV9wcm9iX2xoZJRoBEsOSw9Oh5RSlIwTbGVmdF9ibGlua19wcm9iX2xo\n"
    "ZJRoBEsPSxBOh5RSlIwUcmlnaHRfYmxpbmtfcHJvYl9saGSUaARLEEsRToeUUpSME3N1bmdsYXNz\n"
    "ZXNfcHJvYl9saGSUaARLEUsSToeUUpSMFHVzaW5nX3Bob25lX3Byb2JfbGhklGgESxJLE06HlFKU\n"
    "jA5zbGVlcF9wcm9iX2xoZJRoBEsTSxROh5RSlIwOZmFjZV9kZXNjc19yaGSUaARLFEsgToeUUpSM\n"
    "DWZhY2VfcHJvYl9yaGSUaARLIEshToeUUpSMEWxlZnRfZXllX3Byb2JfcmhklGgESyBLIU6HlFKU\n"
    "jBJyaWdodF9leWVfcHJvYl9yaGSUaARLIksjToeUUpSME2xlZnRfYmxpbmtfcHJvYl9yaGSUaARL\n"
    "I0skToeUUpSMFHJpZ2h0X2JsaW5rX3Byb2JfcmhklGgESyRLJU6HlFKUjBNzdW5nbGFzc2VzX3By\n"
    "b2JfcmhklGgESyVLJk6HlFKUjBR1c2luZ19waG9uZV9wcm9iX3JoZJRoBEsmSydOh5RSlIwOc2xl\n"
    "ZXBfcHJvYl9yaGSUaARLJ0soToeUUpSMDndoZWVsX29uX3JpZ2h0lGgESyhLKU6HlFKUjAhmZWF0\n"
    "dXJlc5RoBEspTSkCToeUUpR1Lg==\n";

}  // namespace ignis::pipeline::testing
