BEGIN TRANSACTION;
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	status VARCHAR NOT NULL, 
	preset VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	engines JSON NOT NULL, 
	options JSON NOT NULL, 
	pid INTEGER, 
	host VARCHAR, 
	process_started FLOAT, 
	heartbeat_at DATETIME, 
	started_at DATETIME, 
	finished_at DATETIME, 
	cancel_requested BOOLEAN NOT NULL, 
	error VARCHAR, 
	summary JSON NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id)
);
INSERT INTO "audit" VALUES(1,1,'2026-11-22 17:37:12.732485','finished','quick','cpu',0,'["cross_entropy"]','{"map": "pca"}',NULL,NULL,NULL,'2026-11-22 17:37:12.774703','2026-11-22 17:37:12.774698','2026-11-22 17:37:13.687323',0,NULL,'{"settled_at": "2026-11-22T17:37:13.675689+00:00", "noise_rate": {"low": 0.075, "point": 0.19949838758016214, "high": 0.55, "kind": "guess", "sentence": "A guess: between 7.5 % and 55 % of 200 labels may be wrong (6 estimators, none verified). Verify a random sample to know.", "estimators": {"by separation": 0.19949838758016214, "surest of each class differ": 0.12546153846153846, "surest of all differ": 0.075, "mixture of margins": 0.36528910236195145, "confident joint": 0.5076972764747077, "predictions differ": 0.55}}, "noise_rate_guess": {"low": 0.075, "point": 0.19949838758016214, "high": 0.55, "kind": "guess", "sentence": "A guess: between 7.5 % and 55 % of 200 labels may be wrong (6 estimators, none verified). Verify a random sample to know.", "estimators": {"by separation": 0.19949838758016214, "surest of each class differ": 0.12546153846153846, "surest of all differ": 0.075, "mixture of margins": 0.36528910236195145, "confident joint": 0.5076972764747077, "predictions differ": 0.55}}, "transition": {"matrix": [[0.668947, 0.0, 0.108704, 0.0, 0.0, 0.0, 0.108704, 0.113645, 0.0, 0.0], [0.0, 0.860927, 0.0, 0.0, 0.072848, 0.066225, 0.0, 0.0, 0.0, 0.0], [0.292317, 0.0, 0.095003, 0.047502, 0.31351, 0.047502, 0.047502, 0.049661, 0.057002, 0.050002], [0.0, 0.0, 0.0, 0.5815, 0.049204, 0.134192, 0.0, 0.046764, 0.0, 0.18834], [0.06324, 0.085637, 0.205528, 0.051382, 0.150721, 0.0, 0.068509, 0.107435, 0.123317, 0.14423], [0.0, 0.0, 0.0, 0.0, 0.099099, 0.900901, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.105871, 0.0, 0.174687, 0.0, 0.0, 0.719442, 0.0, 0.0], [0.0, 0.102041, 0.0, 0.204082, 0.0, 0.153061, 0.05102, 0.0, 0.489796, 0.0], [0.0, 0.0, 0.120253, 0.0, 0.0, 0.120253, 0.0, 0.0, 0.0, 0.759494]], "low": [[0.109934, 0.0, 0.106199, 0.0, 0.0, 0.0, 0.108704, 0.113645, 0.0, 0.0], [0.0, 0.1648, 0.0, 0.0, 0.072848, 0.066225, 0.0, 0.0, 0.0, 0.0], [0.080257, 0.0, 0.08812, 0.047502, 0.111884, 0.047502, 0.047502, 0.049661, 0.057002, 0.050002], [0.0, 0.0, 0.0, 0.123122, 0.049204, 0.102759, 0.0, 0.046764, 0.0, 0.104405], [0.06324, 0.085637, 0.096684, 0.051382, 0.107966, 0.0, 0.068509, 0.107435, 0.084594, 0.106363], [0.0, 0.0, 0.0, 0.0, 0.099099, 0.130944, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.189627, 0.0, 0.0, 0.0], [0.0, 0.0, 0.095652, 0.0, 0.114013, 0.0, 0.0, 0.142874, 0.0, 0.0], [0.0, 0.097048, 0.0, 0.114855, 0.0, 0.10771, 0.05102, 0.0, 0.10377, 0.0], [0.0, 0.0, 0.098941, 0.0, 0.0, 0.089278, 0.0, 0.0, 0.0, 0.130518]], "high": [[0.668947, 0.066894, 0.108704, 0.094523, 0.091427, 0.089606, 0.116805, 0.124571, 0.091521, 0.10852], [0.068275, 0.860927, 0.082474, 0.098523, 0.124803, 0.084268, 0.082575, 0.117232, 0.096134, 0.080917], [0.292317, 0.100135, 0.095003, 0.107905, 0.31351, 0.099611, 0.11434, 0.103555, 0.084274, 0.109918], [0.075348, 0.107195, 0.079517, 0.5815, 0.108395, 0.134192, 0.097406, 0.117893, 0.08396, 0.18834], [0.075676, 0.110756, 0.205528, 0.110192, 0.150721, 0.081895, 0.108377, 0.117497, 0.123317, 0.14423], [0.083967, 0.088715, 0.080202, 0.103805, 0.106479, 0.900901, 0.096522, 0.112116, 0.092115, 0.105134], [0.087757, 0.07764, 0.092172, 0.076624, 0.124616, 0.084806, 1.0, 0.095186, 0.084406, 0.087167], [0.075042, 0.09693, 0.105871, 0.107425, 0.174687, 0.086577, 0.097265, 0.719442, 0.099101, 0.085121], [0.065843, 0.102041, 0.080417, 0.204082, 0.102962, 0.153061, 0.126563, 0.108308, 0.489796, 0.092524], [0.083345, 0.08441, 0.120253, 0.116422, 0.09921, 0.120253, 0.111883, 0.106108, 0.079885, 0.759494]], "kind": "guess", "sentence": "A guess from the witnesses'' predictions; verify a random sample to know."}, "transition_guess": {"matrix": [[0.668947, 0.0, 0.108704, 0.0, 0.0, 0.0, 0.108704, 0.113645, 0.0, 0.0], [0.0, 0.860927, 0.0, 0.0, 0.072848, 0.066225, 0.0, 0.0, 0.0, 0.0], [0.292317, 0.0, 0.095003, 0.047502, 0.31351, 0.047502, 0.047502, 0.049661, 0.057002, 0.050002], [0.0, 0.0, 0.0, 0.5815, 0.049204, 0.134192, 0.0, 0.046764, 0.0, 0.18834], [0.06324, 0.085637, 0.205528, 0.051382, 0.150721, 0.0, 0.068509, 0.107435, 0.123317, 0.14423], [0.0, 0.0, 0.0, 0.0, 0.099099, 0.900901, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.105871, 0.0, 0.174687, 0.0, 0.0, 0.719442, 0.0, 0.0], [0.0, 0.102041, 0.0, 0.204082, 0.0, 0.153061, 0.05102, 0.0, 0.489796, 0.0], [0.0, 0.0, 0.120253, 0.0, 0.0, 0.120253, 0.0, 0.0, 0.0, 0.759494]], "low": [[0.109934, 0.0, 0.106199, 0.0, 0.0, 0.0, 0.108704, 0.113645, 0.0, 0.0], [0.0, 0.1648, 0.0, 0.0, 0.072848, 0.066225, 0.0, 0.0, 0.0, 0.0], [0.080257, 0.0, 0.08812, 0.047502, 0.111884, 0.047502, 0.047502, 0.049661, 0.057002, 0.050002], [0.0, 0.0, 0.0, 0.123122, 0.049204, 0.102759, 0.0, 0.046764, 0.0, 0.104405], [0.06324, 0.085637, 0.096684, 0.051382, 0.107966, 0.0, 0.068509, 0.107435, 0.084594, 0.106363], [0.0, 0.0, 0.0, 0.0, 0.099099, 0.130944, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.189627, 0.0, 0.0, 0.0], [0.0, 0.0, 0.095652, 0.0, 0.114013, 0.0, 0.0, 0.142874, 0.0, 0.0], [0.0, 0.097048, 0.0, 0.114855, 0.0, 0.10771, 0.05102, 0.0, 0.10377, 0.0], [0.0, 0.0, 0.098941, 0.0, 0.0, 0.089278, 0.0, 0.0, 0.0, 0.130518]], "high": [[0.668947, 0.066894, 0.108704, 0.094523, 0.091427, 0.089606, 0.116805, 0.124571, 0.091521, 0.10852], [0.068275, 0.860927, 0.082474, 0.098523, 0.124803, 0.084268, 0.082575, 0.117232, 0.096134, 0.080917], [0.292317, 0.100135, 0.095003, 0.107905, 0.31351, 0.099611, 0.11434, 0.103555, 0.084274, 0.109918], [0.075348, 0.107195, 0.079517, 0.5815, 0.108395, 0.134192, 0.097406, 0.117893, 0.08396, 0.18834], [0.075676, 0.110756, 0.205528, 0.110192, 0.150721, 0.081895, 0.108377, 0.117497, 0.123317, 0.14423], [0.083967, 0.088715, 0.080202, 0.103805, 0.106479, 0.900901, 0.096522, 0.112116, 0.092115, 0.105134], [0.087757, 0.07764, 0.092172, 0.076624, 0.124616, 0.084806, 1.0, 0.095186, 0.084406, 0.087167], [0.075042, 0.09693, 0.105871, 0.107425, 0.174687, 0.086577, 0.097265, 0.719442, 0.099101, 0.085121], [0.065843, 0.102041, 0.080417, 0.204082, 0.102962, 0.153061, 0.126563, 0.108308, 0.489796, 0.092524], [0.083345, 0.08441, 0.120253, 0.116422, 0.09921, 0.120253, 0.111883, 0.106108, 0.079885, 0.759494]], "kind": "guess", "sentence": "A guess from the witnesses'' predictions; verify a random sample to know."}, "witnesses": ["cross_entropy"], "num_voters": 1, "weights": {"cross_entropy": 1.0}, "weights_are_learned": false, "rows_chose_weights": false, "weights_sentence": "Equal weights: every witness counts the same.", "rank_correlations": [[1.0]], "structured_noise": false, "structured_noise_sentence": "Only one witness has ranked enough samples; whether the noise is structured cannot be seen.", "error_probability_is_guess": true, "suggestion_is_calibrated": false, "num_label_issues": 40}');
INSERT INTO "audit" VALUES(2,1,'2026-11-22 17:37:14.871161','finished','quick','cpu',0,'["cross_entropy"]','{"map": "pca"}',NULL,NULL,NULL,'2026-11-22 17:37:14.904696','2026-11-22 17:37:14.904689','2026-11-22 17:37:15.960232',0,NULL,'{"settled_at": "2026-11-22T17:37:15.958255+00:00", "noise_rate": {"low": 0.04, "point": 0.1384933011488901, "high": 0.3, "kind": "interval", "sentence": "7 of 65 randomly drawn labels are wrong, 3 unsure or passed over: 4 % to 30 % of 200 (95 % interval, valid at every size while you watch).", "estimators": {}}, "noise_rate_guess": {"low": 0.21611111111111111, "point": 0.21782253471044938, "high": 0.585, "kind": "guess", "sentence": "A guess: between 22 % and 58 % of 200 labels may be wrong (6 estimators, none verified). Verify a random sample to know.", "estimators": {"by separation": 0.21782253471044938, "surest of each class differ": 0.21611111111111111, "surest of all differ": 0.25, "mixture of margins": 0.3146849865247367, "confident joint": 0.4895835846493264, "predictions differ": 0.585}}, "transition": {"matrix": [[0.844136, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.055864, 0.0, 0.0], [0.0, 0.967079, 0.0, 0.0, 0.032921, 0.0, 0.0, 0.0, 0.0, 0.0], [0.066035, 0.0, 0.676564, 0.0, 0.084745, 0.04066, 0.020136, 0.022149, 0.02889, 0.060821], [0.0, 0.046145, 0.0, 0.75225, 0.0, 0.0, 0.0, 0.04776, 0.076923, 0.076923], [0.015491, 0.030122, 0.086114, 0.079071, 0.579523, 0.021462, 0.021257, 0.023382, 0.050831, 0.092745], [0.0, 0.0, 0.0, 0.0, 0.076248, 0.923752, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.038116, 0.0, 0.961884, 0.0, 0.0, 0.0], [0.026278, 0.0, 0.024346, 0.0, 0.033724, 0.0, 0.090909, 0.824742, 0.0, 0.0], [0.0, 0.0, 0.0, 0.194499, 0.0, 0.113169, 0.037362, 0.0, 0.654971, 0.0], [0.0, 0.0, 0.104626, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.895374]], "low": [[0.115219, 0.0, 0.0, 0.0, 0.0, 0.0, 0.000658, 0.0, 0.0, 0.0], [0.0, 0.379784, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.29163, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.155173, 0.0, 0.0, 0.0, 0.0, 0.000402, 0.000402], [0.0, 0.0, 0.0, 0.0, 0.203155, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.066987, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.163649, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.000548, 0.136921, 0.0, 0.0], [0.0, 0.0, 0.0, 0.00081, 0.0, 0.0, 0.0, 0.0, 0.05337, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.252413]], "high": [[0.998969, 0.731239, 0.585032, 0.585032, 0.731239, 0.585032, 0.796452, 0.585032, 0.585032, 0.585032], [0.544009, 1.0, 0.405519, 0.405519, 0.544009, 0.405519, 0.405519, 0.405519, 0.405519, 0.405519], [0.581674, 0.581674, 1.0, 0.438941, 0.581674, 0.438941, 0.438941, 0.438941, 0.438941, 0.438941], [0.581674, 0.581674, 0.438941, 0.987226, 0.581674, 0.438941, 0.438941, 0.438941, 0.624746, 0.624746], [0.731239, 0.731239, 0.585032, 0.585032, 1.0, 0.585032, 0.585032, 0.585032, 0.585032, 0.585032], [0.869011, 0.869011, 0.75, 0.75, 0.869011, 1.0, 0.75, 0.75, 0.75, 0.75], [0.731239, 0.731239, 0.585032, 0.585032, 0.731239, 0.585032, 1.0, 0.585032, 0.585032, 0.585032], [0.674246, 0.674246, 0.526434, 0.526434, 0.674246, 0.526434, 0.731239, 0.998969, 0.526434, 0.526434], [0.796452, 0.796452, 0.658054, 0.869011, 0.796452, 0.658054, 0.658054, 0.658054, 0.998035, 0.658054], [0.624746, 0.624746, 0.478617, 0.478617, 0.624746, 0.478617, 0.478617, 0.478617, 0.478617, 1.0]], "kind": "interval", "sentence": "From 60 verified rows, each cell with its own 95 % interval. 10 of 10 classes have fewer than 20 verified rows: their rows lean on the predictions'' guess."}, "transition_guess": {"matrix": [[0.888272, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.111728, 0.0, 0.0], [0.0, 0.907821, 0.0, 0.0, 0.092179, 0.0, 0.0, 0.0, 0.0, 0.0], [0.17169, 0.0, 0.159066, 0.0, 0.220336, 0.105717, 0.052353, 0.057588, 0.075115, 0.158136], [0.0, 0.119976, 0.0, 0.755849, 0.0, 0.0, 0.0, 0.124175, 0.0, 0.0], [0.030983, 0.060245, 0.172229, 0.158142, 0.159046, 0.042924, 0.042514, 0.046765, 0.101663, 0.18549], [0.0, 0.0, 0.0, 0.0, 0.121996, 0.878004, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.076232, 0.0, 0.923768, 0.0, 0.0, 0.0], [0.057812, 0.0, 0.053562, 0.0, 0.074193, 0.0, 0.0, 0.814433, 0.0, 0.0], [0.0, 0.0, 0.0, 0.150097, 0.0, 0.203704, 0.067251, 0.0, 0.578947, 0.0], [0.0, 0.0, 0.251101, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.748899]], "low": [[0.126348, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.111728, 0.0, 0.0], [0.0, 0.169086, 0.0, 0.0, 0.092179, 0.0, 0.0, 0.0, 0.0, 0.0], [0.08685, 0.0, 0.094017, 0.0, 0.103453, 0.104667, 0.052353, 0.057588, 0.075115, 0.11145], [0.0, 0.103117, 0.0, 0.125353, 0.0, 0.0, 0.0, 0.115003, 0.0, 0.0], [0.030983, 0.060245, 0.093992, 0.111231, 0.110374, 0.042924, 0.042514, 0.046765, 0.086564, 0.107023], [0.0, 0.0, 0.0, 0.0, 0.107837, 0.127925, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.076232, 0.0, 0.172459, 0.0, 0.0, 0.0], [0.057812, 0.0, 0.053562, 0.0, 0.074193, 0.0, 0.0, 0.149102, 0.0, 0.0], [0.0, 0.0, 0.0, 0.110947, 0.0, 0.102339, 0.067251, 0.0, 0.103749, 0.0], [0.0, 0.0, 0.097532, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.127088]], "high": [[0.888272, 0.062977, 0.098087, 0.090415, 0.090546, 0.088395, 0.126222, 0.116223, 0.086869, 0.113919], [0.063164, 0.907821, 0.084181, 0.100677, 0.128455, 0.083427, 0.080674, 0.11334, 0.099013, 0.077983], [0.17169, 0.079446, 0.159066, 0.10797, 0.220336, 0.105717, 0.125988, 0.09949, 0.086668, 0.158136], [0.07908, 0.119976, 0.081045, 0.755849, 0.102755, 0.098602, 0.104107, 0.124175, 0.084941, 0.105997], [0.077193, 0.09989, 0.172229, 0.158142, 0.159046, 0.088076, 0.112785, 0.112872, 0.101663, 0.18549], [0.085503, 0.087765, 0.077503, 0.103337, 0.121996, 0.878004, 0.104266, 0.110606, 0.089341, 0.105917], [0.081172, 0.084744, 0.092689, 0.082183, 0.127967, 0.090657, 0.923768, 0.099641, 0.083214, 0.085272], [0.070587, 0.100757, 0.096061, 0.104575, 0.113691, 0.086349, 0.098225, 0.814433, 0.097474, 0.083179], [0.069622, 0.086569, 0.085885, 0.150097, 0.098263, 0.203704, 0.130905, 0.112251, 0.578947, 0.099471], [0.077857, 0.090916, 0.251101, 0.112278, 0.102725, 0.091452, 0.107826, 0.114631, 0.077696, 0.748899]], "kind": "guess", "sentence": "A guess from the witnesses'' predictions; verify a random sample to know."}, "witnesses": ["cross_entropy"], "num_voters": 1, "weights": {"cross_entropy": 1.0}, "weights_are_learned": false, "rows_chose_weights": false, "weights_sentence": "Equal weights: there is only one witness.", "rank_correlations": [[1.0]], "structured_noise": false, "structured_noise_sentence": "Only one witness has ranked enough samples; whether the noise is structured cannot be seen.", "error_probability_is_guess": false, "suggestion_is_calibrated": false, "num_label_issues": 28}');
CREATE TABLE dataset (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	source VARCHAR NOT NULL, 
	source_kind VARCHAR NOT NULL, 
	root VARCHAR NOT NULL, 
	num_samples INTEGER NOT NULL, 
	channels INTEGER NOT NULL, 
	height INTEGER NOT NULL, 
	width INTEGER NOT NULL, 
	class_names JSON NOT NULL, 
	user_columns JSON NOT NULL, 
	path_column VARCHAR, 
	label_column VARCHAR, 
	has_true_labels BOOLEAN NOT NULL, 
	import_report JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "dataset" VALUES(1,'digits','2026-11-22 17:37:03.687795','digits.csv','table','.',200,1,8,8,'["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]','["filepath", "label", "batch"]','filepath','label',0,'{}');
CREATE TABLE decision (
	dataset_id INTEGER NOT NULL, 
	sample_id INTEGER NOT NULL, 
	review_id INTEGER NOT NULL, 
	decision VARCHAR NOT NULL, 
	label INTEGER, 
	labels JSON, 
	reviewer VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (dataset_id, sample_id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id), 
	FOREIGN KEY(review_id) REFERENCES review (id)
);
INSERT INTO "decision" VALUES(1,77,14,'exclude',NULL,'null','bob','2026-11-22 17:37:13.876155');
INSERT INTO "decision" VALUES(1,50,15,'unsure',NULL,'null','bob','2026-11-22 17:37:13.889089');
INSERT INTO "decision" VALUES(1,57,3,'keep',NULL,'null','ada','2026-11-22 17:37:13.801374');
INSERT INTO "decision" VALUES(1,180,4,'keep',NULL,'null','ada','2026-11-22 17:37:13.804778');
INSERT INTO "decision" VALUES(1,152,5,'keep',NULL,'null','ada','2026-11-22 17:37:13.812396');
INSERT INTO "decision" VALUES(1,2,6,'keep',NULL,'null','ada','2026-11-22 17:37:13.819446');
INSERT INTO "decision" VALUES(1,151,7,'relabel',1,'null','ada','2026-11-22 17:37:13.826749');
INSERT INTO "decision" VALUES(1,75,8,'keep',NULL,'null','ada','2026-11-22 17:37:13.838716');
INSERT INTO "decision" VALUES(1,161,9,'exclude',NULL,'null','ada','2026-11-22 17:37:13.845617');
INSERT INTO "decision" VALUES(1,116,10,'unsure',NULL,'null','ada','2026-11-22 17:37:13.848226');
INSERT INTO "decision" VALUES(1,142,11,'multiple',NULL,'[1, 7]','ada','2026-11-22 17:37:13.854993');
INSERT INTO "decision" VALUES(1,51,12,'none',NULL,'null','ada','2026-11-22 17:37:13.861997');
INSERT INTO "decision" VALUES(1,84,13,'unreadable',NULL,'null','ada','2026-11-22 17:37:13.864481');
INSERT INTO "decision" VALUES(1,132,34,'keep',NULL,'null','ada','2026-11-22 17:37:14.019440');
INSERT INTO "decision" VALUES(1,154,21,'relabel',7,'null','ada','2026-11-22 17:37:13.951112');
INSERT INTO "decision" VALUES(1,114,22,'relabel',7,'null','ada','2026-11-22 17:37:13.952173');
INSERT INTO "decision" VALUES(1,28,23,'relabel',7,'null','ada','2026-11-22 17:37:13.957903');
INSERT INTO "decision" VALUES(1,181,24,'relabel',7,'null','ada','2026-11-22 17:37:13.959340');
INSERT INTO "decision" VALUES(1,53,25,'relabel',7,'null','ada','2026-11-22 17:37:13.960398');
INSERT INTO "decision" VALUES(1,21,35,'exclude',NULL,'null','bob','2026-11-22 17:37:14.461278');
INSERT INTO "decision" VALUES(1,11,36,'unsure',NULL,'null','bob','2026-11-22 17:37:14.473518');
INSERT INTO "decision" VALUES(1,20,39,'relabel',1,'null','bob','2026-11-22 17:37:14.505628');
INSERT INTO "decision" VALUES(1,5,40,'relabel',3,'null','bob','2026-11-22 17:37:14.508240');
INSERT INTO "decision" VALUES(1,101,41,'relabel',2,'null','ada','2026-11-22 17:37:14.514727');
INSERT INTO "decision" VALUES(1,170,42,'relabel',2,'null','ada','2026-11-22 17:37:14.527296');
INSERT INTO "decision" VALUES(1,126,43,'exclude',NULL,'null','cy','2026-11-22 17:37:14.686298');
INSERT INTO "decision" VALUES(1,95,44,'relabel',5,'null','cy','2026-11-22 17:37:14.686298');
INSERT INTO "decision" VALUES(1,131,45,'keep',NULL,'null','cy','2026-11-22 17:37:14.686298');
CREATE TABLE draw (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	seed INTEGER NOT NULL, 
	size INTEGER NOT NULL, 
	sample_ids JSON NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id)
);
INSERT INTO "draw" VALUES(1,1,'2026-11-22 17:37:14.034303',1,60,'[56, 169, 104, 162, 142, 46, 21, 11, 66, 122, 20, 5, 131, 70, 3, 31, 180, 198, 41, 141, 36, 159, 136, 186, 90, 183, 127, 47, 39, 86, 75, 64, 37, 132, 184, 140, 17, 51, 193, 191, 107, 63, 4, 182, 195, 23, 72, 139, 92, 89, 78, 13, 181, 134, 67, 88, 120, 101, 170, 54]');
INSERT INTO "draw" VALUES(2,1,'2026-11-22 17:37:14.601658',2,12,'[98, 158, 59, 27, 187, 164, 6, 178, 8, 196, 57, 40]');
CREATE TABLE engine_run (
	audit_id INTEGER NOT NULL, 
	engine VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	status VARCHAR NOT NULL, 
	progress FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	stage VARCHAR NOT NULL, 
	config JSON NOT NULL, 
	provenance JSON NOT NULL, 
	error VARCHAR, 
	PRIMARY KEY (audit_id, engine), 
	FOREIGN KEY(audit_id) REFERENCES audit (id)
);
INSERT INTO "engine_run" VALUES(1,'cross_entropy',0,'finished',1.0,8.03642210999896633438e-01,'train','{}','{}',NULL);
INSERT INTO "engine_run" VALUES(2,'cross_entropy',0,'finished',1.0,8.57673652999892510706e-01,'train','{}','{}',NULL);
CREATE TABLE epoch (
	audit_id INTEGER NOT NULL, 
	engine VARCHAR NOT NULL, 
	stage VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	num_epochs INTEGER NOT NULL, 
	progress FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	losses JSON NOT NULL, 
	metrics JSON NOT NULL, 
	PRIMARY KEY (audit_id, engine, stage, epoch), 
	FOREIGN KEY(audit_id) REFERENCES audit (id)
);
CREATE TABLE last_id (
	name VARCHAR NOT NULL, 
	last_id INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "last_id" VALUES('dataset',1);
INSERT INTO "last_id" VALUES('audit',2);
INSERT INTO "last_id" VALUES('draw',2);
CREATE TABLE review (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	sample_id INTEGER NOT NULL, 
	decision VARCHAR NOT NULL, 
	label INTEGER, 
	labels JSON, 
	reviewer VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	source VARCHAR NOT NULL, 
	batch VARCHAR, 
	audit_id INTEGER, 
	reverts INTEGER, 
	note VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id)
);
INSERT INTO "review" VALUES(1,1,77,'keep',NULL,'null','ada','2026-11-22 17:37:13.768942','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(2,1,50,'keep',NULL,'null','ada','2026-11-22 17:37:13.790067','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(3,1,57,'keep',NULL,'null','ada','2026-11-22 17:37:13.801374','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(4,1,180,'keep',NULL,'null','ada','2026-11-22 17:37:13.804778','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(5,1,152,'keep',NULL,'null','ada','2026-11-22 17:37:13.812396','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(6,1,2,'keep',NULL,'null','ada','2026-11-22 17:37:13.819446','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(7,1,151,'relabel',1,'null','ada','2026-11-22 17:37:13.826749','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(8,1,75,'keep',NULL,'null','ada','2026-11-22 17:37:13.838716','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(9,1,161,'exclude',NULL,'null','ada','2026-11-22 17:37:13.845617','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(10,1,116,'unsure',NULL,'null','ada','2026-11-22 17:37:13.848226','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(11,1,142,'multiple',NULL,'[1, 7]','ada','2026-11-22 17:37:13.854993','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(12,1,51,'none',NULL,'null','ada','2026-11-22 17:37:13.861997','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(13,1,84,'unreadable',NULL,'null','ada','2026-11-22 17:37:13.864481','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(14,1,77,'exclude',NULL,'null','bob','2026-11-22 17:37:13.876155','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(15,1,50,'unsure',NULL,'null','bob','2026-11-22 17:37:13.889089','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(16,1,64,'exclude',NULL,'null','ada','2026-11-22 17:37:13.892167','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(17,1,64,'undo',NULL,'null','ada','2026-11-22 17:37:13.910816','app',NULL,1,16,NULL);
INSERT INTO "review" VALUES(18,1,116,'keep',NULL,'null','ada','2026-11-22 17:37:13.923233','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(19,1,116,'undo',NULL,'null','ada','2026-11-22 17:37:13.932444','app',NULL,1,18,NULL);
INSERT INTO "review" VALUES(20,1,132,'relabel',6,'null','ada','2026-11-22 17:37:13.949391','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(21,1,154,'relabel',7,'null','ada','2026-11-22 17:37:13.951112','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(22,1,114,'relabel',7,'null','ada','2026-11-22 17:37:13.952173','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(23,1,28,'relabel',7,'null','ada','2026-11-22 17:37:13.957903','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(24,1,181,'relabel',7,'null','ada','2026-11-22 17:37:13.959340','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(25,1,53,'relabel',7,'null','ada','2026-11-22 17:37:13.960398','unseen','417b445792b04c5682ab8f68bea995ec',1,NULL,NULL);
INSERT INTO "review" VALUES(26,1,144,'relabel',6,'null','bob','2026-11-22 17:37:13.972152','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,NULL,NULL);
INSERT INTO "review" VALUES(27,1,134,'relabel',7,'null','bob','2026-11-22 17:37:13.977905','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,NULL,NULL);
INSERT INTO "review" VALUES(28,1,171,'relabel',7,'null','bob','2026-11-22 17:37:13.979059','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,NULL,NULL);
INSERT INTO "review" VALUES(29,1,184,'relabel',6,'null','bob','2026-11-22 17:37:13.980073','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,NULL,NULL);
INSERT INTO "review" VALUES(30,1,144,'undo',NULL,'null','bob','2026-11-22 17:37:13.996821','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,26,NULL);
INSERT INTO "review" VALUES(31,1,134,'undo',NULL,'null','bob','2026-11-22 17:37:14.006847','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,27,NULL);
INSERT INTO "review" VALUES(32,1,171,'undo',NULL,'null','bob','2026-11-22 17:37:14.007850','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,28,NULL);
INSERT INTO "review" VALUES(33,1,184,'undo',NULL,'null','bob','2026-11-22 17:37:14.008863','unseen','b08ce04f8f204f54ab556dfa7bd824b7',1,29,NULL);
INSERT INTO "review" VALUES(34,1,132,'keep',NULL,'null','ada','2026-11-22 17:37:14.019440','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(35,1,21,'exclude',NULL,'null','bob','2026-11-22 17:37:14.461278','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(36,1,11,'unsure',NULL,'null','bob','2026-11-22 17:37:14.473518','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(37,1,66,'keep',NULL,'null','bob','2026-11-22 17:37:14.479435','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(38,1,66,'undo',NULL,'null','bob','2026-11-22 17:37:14.488768','app',NULL,1,37,NULL);
INSERT INTO "review" VALUES(39,1,20,'relabel',1,'null','bob','2026-11-22 17:37:14.505628','unseen','944a25c8fa5749f3bf89061fefe5dc40',1,NULL,NULL);
INSERT INTO "review" VALUES(40,1,5,'relabel',3,'null','bob','2026-11-22 17:37:14.508240','unseen','944a25c8fa5749f3bf89061fefe5dc40',1,NULL,NULL);
INSERT INTO "review" VALUES(41,1,101,'relabel',2,'null','ada','2026-11-22 17:37:14.514727','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(42,1,170,'relabel',2,'null','ada','2026-11-22 17:37:14.527296','app',NULL,1,NULL,NULL);
INSERT INTO "review" VALUES(43,1,126,'exclude',NULL,'null','cy','2026-11-22 17:37:14.686298','csv','a36e9b0b211e4d438e9f36fa3dec0380',NULL,NULL,NULL);
INSERT INTO "review" VALUES(44,1,95,'relabel',5,'null','cy','2026-11-22 17:37:14.686298','unseen','a36e9b0b211e4d438e9f36fa3dec0380',NULL,NULL,NULL);
INSERT INTO "review" VALUES(45,1,131,'keep',NULL,'null','cy','2026-11-22 17:37:14.686298','csv','a36e9b0b211e4d438e9f36fa3dec0380',NULL,NULL,NULL);
CREATE TABLE sample (
	dataset_id INTEGER NOT NULL, 
	sample_id INTEGER NOT NULL, 
	filepath VARCHAR NOT NULL, 
	location VARCHAR NOT NULL, 
	given_label INTEGER NOT NULL, 
	trusted BOOLEAN NOT NULL, 
	split VARCHAR, 
	content_hash VARCHAR NOT NULL, 
	perceptual_hash BIGINT, 
	duplicate_group INTEGER, 
	duplicate_kind VARCHAR, 
	original_height INTEGER NOT NULL, 
	original_width INTEGER NOT NULL, 
	extra JSON, 
	PRIMARY KEY (dataset_id, sample_id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id)
);
INSERT INTO "sample" VALUES(1,0,'images/0000.png','images/0000.png',7,0,NULL,'ec2ffec0',NULL,NULL,NULL,8,8,'{"filepath": "images/0000.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,1,'images/0001.png','images/0001.png',1,0,NULL,'7aa1daee',NULL,NULL,NULL,8,8,'{"filepath": "images/0001.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,2,'images/0002.png','images/0002.png',2,0,NULL,'bca32795',NULL,NULL,NULL,8,8,'{"filepath": "images/0002.png", "label": "2", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,3,'images/0003.png','images/0003.png',9,0,NULL,'48aa7a95',NULL,NULL,NULL,8,8,'{"filepath": "images/0003.png", "label": "9", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,4,'images/0004.png','images/0004.png',4,0,NULL,'47c1e65d',NULL,NULL,NULL,8,8,'{"filepath": "images/0004.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,5,'images/0005.png','images/0005.png',5,0,NULL,'69fb4ceb',NULL,NULL,NULL,8,8,'{"filepath": "images/0005.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,6,'images/0006.png','images/0006.png',6,0,NULL,'2bc6c41e',NULL,NULL,NULL,8,8,'{"filepath": "images/0006.png", "label": "6", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,7,'images/0007.png','images/0007.png',1,0,NULL,'03a13825',NULL,NULL,NULL,8,8,'{"filepath": "images/0007.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,8,'images/0008.png','images/0008.png',8,0,NULL,'02ea1ffb',NULL,NULL,NULL,8,8,'{"filepath": "images/0008.png", "label": "8", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,9,'images/0009.png','images/0009.png',9,0,NULL,'8150f857',NULL,NULL,NULL,8,8,'{"filepath": "images/0009.png", "label": "9", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,10,'images/0010.png','images/0010.png',0,0,NULL,'7f7dc117',NULL,NULL,NULL,8,8,'{"filepath": "images/0010.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,11,'images/0011.png','images/0011.png',1,0,NULL,'d470d392',NULL,NULL,NULL,8,8,'{"filepath": "images/0011.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,12,'images/0012.png','images/0012.png',2,0,NULL,'0b7d3a03',NULL,NULL,NULL,8,8,'{"filepath": "images/0012.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,13,'images/0013.png','images/0013.png',8,0,NULL,'293f3210',NULL,NULL,NULL,8,8,'{"filepath": "images/0013.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,14,'images/0014.png','images/0014.png',4,0,NULL,'3a463f48',NULL,NULL,NULL,8,8,'{"filepath": "images/0014.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,15,'images/0015.png','images/0015.png',5,0,NULL,'c6654545',NULL,NULL,NULL,8,8,'{"filepath": "images/0015.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,16,'images/0016.png','images/0016.png',6,0,NULL,'d8f2d2f5',NULL,NULL,NULL,8,8,'{"filepath": "images/0016.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,17,'images/0017.png','images/0017.png',7,0,NULL,'225486c0',NULL,NULL,NULL,8,8,'{"filepath": "images/0017.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,18,'images/0018.png','images/0018.png',8,0,NULL,'912ac333',NULL,NULL,NULL,8,8,'{"filepath": "images/0018.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,19,'images/0019.png','images/0019.png',9,0,NULL,'58dfeab3',NULL,NULL,NULL,8,8,'{"filepath": "images/0019.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,20,'images/0020.png','images/0020.png',0,0,NULL,'c308ca54',NULL,NULL,NULL,8,8,'{"filepath": "images/0020.png", "label": "0", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,21,'images/0021.png','images/0021.png',1,0,NULL,'eb4890c7',NULL,NULL,NULL,8,8,'{"filepath": "images/0021.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,22,'images/0022.png','images/0022.png',2,0,NULL,'bfa02b71',NULL,NULL,NULL,8,8,'{"filepath": "images/0022.png", "label": "2", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,23,'images/0023.png','images/0023.png',3,0,NULL,'5785d9b3',NULL,NULL,NULL,8,8,'{"filepath": "images/0023.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,24,'images/0024.png','images/0024.png',4,0,NULL,'a2d12d32',NULL,NULL,NULL,8,8,'{"filepath": "images/0024.png", "label": "4", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,25,'images/0025.png','images/0025.png',5,0,NULL,'be156001',NULL,NULL,NULL,8,8,'{"filepath": "images/0025.png", "label": "5", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,26,'images/0026.png','images/0026.png',6,0,NULL,'863820bc',NULL,NULL,NULL,8,8,'{"filepath": "images/0026.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,27,'images/0027.png','images/0027.png',7,0,NULL,'032b1e5c',NULL,NULL,NULL,8,8,'{"filepath": "images/0027.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,28,'images/0028.png','images/0028.png',8,0,NULL,'0501ad11',NULL,NULL,NULL,8,8,'{"filepath": "images/0028.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,29,'images/0029.png','images/0029.png',9,0,NULL,'98838481',NULL,NULL,NULL,8,8,'{"filepath": "images/0029.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,30,'images/0030.png','images/0030.png',0,0,NULL,'02e9402b',NULL,NULL,NULL,8,8,'{"filepath": "images/0030.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,31,'images/0031.png','images/0031.png',9,0,NULL,'a26b5b62',NULL,NULL,NULL,8,8,'{"filepath": "images/0031.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,32,'images/0032.png','images/0032.png',3,0,NULL,'12151385',NULL,NULL,NULL,8,8,'{"filepath": "images/0032.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,33,'images/0033.png','images/0033.png',5,0,NULL,'64decb0f',NULL,NULL,NULL,8,8,'{"filepath": "images/0033.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,34,'images/0034.png','images/0034.png',6,0,NULL,'27e0fc61',NULL,NULL,NULL,8,8,'{"filepath": "images/0034.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,35,'images/0035.png','images/0035.png',5,0,NULL,'2fda55e4',NULL,NULL,NULL,8,8,'{"filepath": "images/0035.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,36,'images/0036.png','images/0036.png',0,0,NULL,'94efbe7c',NULL,NULL,NULL,8,8,'{"filepath": "images/0036.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,37,'images/0037.png','images/0037.png',9,0,NULL,'81451d1a',NULL,NULL,NULL,8,8,'{"filepath": "images/0037.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,38,'images/0038.png','images/0038.png',8,0,NULL,'c8081640',NULL,NULL,NULL,8,8,'{"filepath": "images/0038.png", "label": "8", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,39,'images/0039.png','images/0039.png',9,0,NULL,'1cd02761',NULL,NULL,NULL,8,8,'{"filepath": "images/0039.png", "label": "9", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,40,'images/0040.png','images/0040.png',8,0,NULL,'688754ff',NULL,NULL,NULL,8,8,'{"filepath": "images/0040.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,41,'images/0041.png','images/0041.png',4,0,NULL,'66f634dc',NULL,NULL,NULL,8,8,'{"filepath": "images/0041.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,42,'images/0042.png','images/0042.png',1,0,NULL,'10529716',NULL,NULL,NULL,8,8,'{"filepath": "images/0042.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,43,'images/0043.png','images/0043.png',7,0,NULL,'057b0609',NULL,NULL,NULL,8,8,'{"filepath": "images/0043.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,44,'images/0044.png','images/0044.png',7,0,NULL,'1446e76d',NULL,NULL,NULL,8,8,'{"filepath": "images/0044.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,45,'images/0045.png','images/0045.png',3,0,NULL,'57f48725',NULL,NULL,NULL,8,8,'{"filepath": "images/0045.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,46,'images/0046.png','images/0046.png',5,0,NULL,'f8c005e6',NULL,NULL,NULL,8,8,'{"filepath": "images/0046.png", "label": "5", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,47,'images/0047.png','images/0047.png',1,0,NULL,'f9173cd0',NULL,NULL,NULL,8,8,'{"filepath": "images/0047.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,48,'images/0048.png','images/0048.png',7,0,NULL,'26559bae',NULL,NULL,NULL,8,8,'{"filepath": "images/0048.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,49,'images/0049.png','images/0049.png',0,0,NULL,'f3ad480e',NULL,NULL,NULL,8,8,'{"filepath": "images/0049.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,50,'images/0050.png','images/0050.png',2,0,NULL,'e2179c31',NULL,NULL,NULL,8,8,'{"filepath": "images/0050.png", "label": "2", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,51,'images/0051.png','images/0051.png',2,0,NULL,'6b46d209',NULL,NULL,NULL,8,8,'{"filepath": "images/0051.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,52,'images/0052.png','images/0052.png',7,0,NULL,'6cfd68cd',NULL,NULL,NULL,8,8,'{"filepath": "images/0052.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,53,'images/0053.png','images/0053.png',8,0,NULL,'e03649bc',NULL,NULL,NULL,8,8,'{"filepath": "images/0053.png", "label": "8", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,54,'images/0054.png','images/0054.png',0,0,NULL,'9f3de994',NULL,NULL,NULL,8,8,'{"filepath": "images/0054.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,55,'images/0055.png','images/0055.png',4,0,NULL,'ee3c8682',NULL,NULL,NULL,8,8,'{"filepath": "images/0055.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,56,'images/0056.png','images/0056.png',1,0,NULL,'6baf1c24',NULL,NULL,NULL,8,8,'{"filepath": "images/0056.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,57,'images/0057.png','images/0057.png',2,0,NULL,'bd3f7da3',NULL,NULL,NULL,8,8,'{"filepath": "images/0057.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,58,'images/0058.png','images/0058.png',6,0,NULL,'ee5e4333',NULL,NULL,NULL,8,8,'{"filepath": "images/0058.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,59,'images/0059.png','images/0059.png',3,0,NULL,'b2b0ebb9',NULL,NULL,NULL,8,8,'{"filepath": "images/0059.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,60,'images/0060.png','images/0060.png',3,0,NULL,'b82b7c4c',NULL,NULL,NULL,8,8,'{"filepath": "images/0060.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,61,'images/0061.png','images/0061.png',7,0,NULL,'5d2c6ba9',NULL,NULL,NULL,8,8,'{"filepath": "images/0061.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,62,'images/0062.png','images/0062.png',3,0,NULL,'f87c2828',NULL,NULL,NULL,8,8,'{"filepath": "images/0062.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,63,'images/0063.png','images/0063.png',3,0,NULL,'38150543',NULL,NULL,NULL,8,8,'{"filepath": "images/0063.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,64,'images/0064.png','images/0064.png',4,0,NULL,'e7d62ba5',NULL,NULL,NULL,8,8,'{"filepath": "images/0064.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,65,'images/0065.png','images/0065.png',6,0,NULL,'98776dd1',NULL,NULL,NULL,8,8,'{"filepath": "images/0065.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,66,'images/0066.png','images/0066.png',6,0,NULL,'43075ae1',NULL,NULL,NULL,8,8,'{"filepath": "images/0066.png", "label": "6", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,67,'images/0067.png','images/0067.png',6,0,NULL,'11356997',NULL,NULL,NULL,8,8,'{"filepath": "images/0067.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,68,'images/0068.png','images/0068.png',4,0,NULL,'17d5e9d5',NULL,NULL,NULL,8,8,'{"filepath": "images/0068.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,69,'images/0069.png','images/0069.png',9,0,NULL,'eb19b1f0',NULL,NULL,NULL,8,8,'{"filepath": "images/0069.png", "label": "9", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,70,'images/0070.png','images/0070.png',1,0,NULL,'e91c1109',NULL,NULL,NULL,8,8,'{"filepath": "images/0070.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,71,'images/0071.png','images/0071.png',5,0,NULL,'c9ec41ef',NULL,NULL,NULL,8,8,'{"filepath": "images/0071.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,72,'images/0072.png','images/0072.png',0,0,NULL,'a7bebfe5',NULL,NULL,NULL,8,8,'{"filepath": "images/0072.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,73,'images/0073.png','images/0073.png',9,0,NULL,'c77f6e4c',NULL,NULL,NULL,8,8,'{"filepath": "images/0073.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,74,'images/0074.png','images/0074.png',5,0,NULL,'b5267e6d',NULL,NULL,NULL,8,8,'{"filepath": "images/0074.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,75,'images/0075.png','images/0075.png',2,0,NULL,'de1060c7',NULL,NULL,NULL,8,8,'{"filepath": "images/0075.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,76,'images/0076.png','images/0076.png',8,0,NULL,'f9abb875',NULL,NULL,NULL,8,8,'{"filepath": "images/0076.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,77,'images/0077.png','images/0077.png',2,0,NULL,'b341664d',NULL,NULL,NULL,8,8,'{"filepath": "images/0077.png", "label": "2", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,78,'images/0078.png','images/0078.png',0,0,NULL,'b6dd59bc',NULL,NULL,NULL,8,8,'{"filepath": "images/0078.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,79,'images/0079.png','images/0079.png',0,0,NULL,'22baa3d6',NULL,NULL,NULL,8,8,'{"filepath": "images/0079.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,80,'images/0080.png','images/0080.png',1,0,NULL,'be4ecd80',NULL,NULL,NULL,8,8,'{"filepath": "images/0080.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,81,'images/0081.png','images/0081.png',7,0,NULL,'b4b1cc47',NULL,NULL,NULL,8,8,'{"filepath": "images/0081.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,82,'images/0082.png','images/0082.png',6,0,NULL,'89700890',NULL,NULL,NULL,8,8,'{"filepath": "images/0082.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,83,'images/0083.png','images/0083.png',3,0,NULL,'4be2cf9a',NULL,NULL,NULL,8,8,'{"filepath": "images/0083.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,84,'images/0084.png','images/0084.png',2,0,NULL,'2e25bc16',NULL,NULL,NULL,8,8,'{"filepath": "images/0084.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,85,'images/0085.png','images/0085.png',1,0,NULL,'052c629c',NULL,NULL,NULL,8,8,'{"filepath": "images/0085.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,86,'images/0086.png','images/0086.png',7,0,NULL,'776e74da',NULL,NULL,NULL,8,8,'{"filepath": "images/0086.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,87,'images/0087.png','images/0087.png',4,0,NULL,'635eff41',NULL,NULL,NULL,8,8,'{"filepath": "images/0087.png", "label": "4", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,88,'images/0088.png','images/0088.png',6,0,NULL,'15bd8165',NULL,NULL,NULL,8,8,'{"filepath": "images/0088.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,89,'images/0089.png','images/0089.png',3,0,NULL,'4ab8dd78',NULL,NULL,NULL,8,8,'{"filepath": "images/0089.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,90,'images/0090.png','images/0090.png',1,0,NULL,'d05404ef',NULL,NULL,NULL,8,8,'{"filepath": "images/0090.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,91,'images/0091.png','images/0091.png',7,0,NULL,'4cb5c50d',NULL,NULL,NULL,8,8,'{"filepath": "images/0091.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,92,'images/0092.png','images/0092.png',9,0,NULL,'9f215575',NULL,NULL,NULL,8,8,'{"filepath": "images/0092.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,93,'images/0093.png','images/0093.png',1,0,NULL,'1f8ce64b',NULL,NULL,NULL,8,8,'{"filepath": "images/0093.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,94,'images/0094.png','images/0094.png',7,0,NULL,'5c3c69e8',NULL,NULL,NULL,8,8,'{"filepath": "images/0094.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,95,'images/0095.png','images/0095.png',4,0,NULL,'3f722408',NULL,NULL,NULL,8,8,'{"filepath": "images/0095.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,96,'images/0096.png','images/0096.png',8,0,NULL,'b901f450',NULL,NULL,NULL,8,8,'{"filepath": "images/0096.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,97,'images/0097.png','images/0097.png',4,0,NULL,'39c64462',NULL,NULL,NULL,8,8,'{"filepath": "images/0097.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,98,'images/0098.png','images/0098.png',3,0,NULL,'dabc42b0',NULL,NULL,NULL,8,8,'{"filepath": "images/0098.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,99,'images/0099.png','images/0099.png',1,0,NULL,'fbcbbab9',NULL,NULL,NULL,8,8,'{"filepath": "images/0099.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,100,'images/0100.png','images/0100.png',4,0,NULL,'cd0590fe',NULL,NULL,NULL,8,8,'{"filepath": "images/0100.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,101,'images/0101.png','images/0101.png',0,0,NULL,'116980ed',NULL,NULL,NULL,8,8,'{"filepath": "images/0101.png", "label": "0", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,102,'images/0102.png','images/0102.png',5,0,NULL,'27b607e4',NULL,NULL,NULL,8,8,'{"filepath": "images/0102.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,103,'images/0103.png','images/0103.png',3,0,NULL,'5e3d9019',NULL,NULL,NULL,8,8,'{"filepath": "images/0103.png", "label": "3", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,104,'images/0104.png','images/0104.png',6,0,NULL,'67d1f29d',NULL,NULL,NULL,8,8,'{"filepath": "images/0104.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,105,'images/0105.png','images/0105.png',2,0,NULL,'4a08385c',NULL,NULL,NULL,8,8,'{"filepath": "images/0105.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,106,'images/0106.png','images/0106.png',6,0,NULL,'440f1ca8',NULL,NULL,NULL,8,8,'{"filepath": "images/0106.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,107,'images/0107.png','images/0107.png',1,0,NULL,'ace6d96c',NULL,NULL,NULL,8,8,'{"filepath": "images/0107.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,108,'images/0108.png','images/0108.png',7,0,NULL,'147dad95',NULL,NULL,NULL,8,8,'{"filepath": "images/0108.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,109,'images/0109.png','images/0109.png',4,0,NULL,'fcb8f1c8',NULL,NULL,NULL,8,8,'{"filepath": "images/0109.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,110,'images/0110.png','images/0110.png',4,0,NULL,'81951c1e',NULL,NULL,NULL,8,8,'{"filepath": "images/0110.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,111,'images/0111.png','images/0111.png',4,0,NULL,'f285b8b9',NULL,NULL,NULL,8,8,'{"filepath": "images/0111.png", "label": "4", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,112,'images/0112.png','images/0112.png',7,0,NULL,'09e05c37',NULL,NULL,NULL,8,8,'{"filepath": "images/0112.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,113,'images/0113.png','images/0113.png',9,0,NULL,'0cdb9df2',NULL,NULL,NULL,8,8,'{"filepath": "images/0113.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,114,'images/0114.png','images/0114.png',8,0,NULL,'d2982b57',NULL,NULL,NULL,8,8,'{"filepath": "images/0114.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,115,'images/0115.png','images/0115.png',4,0,NULL,'023b32dd',NULL,NULL,NULL,8,8,'{"filepath": "images/0115.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,116,'images/0116.png','images/0116.png',2,0,NULL,'d8c8ec99',NULL,NULL,NULL,8,8,'{"filepath": "images/0116.png", "label": "2", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,117,'images/0117.png','images/0117.png',5,0,NULL,'6353ef19',NULL,NULL,NULL,8,8,'{"filepath": "images/0117.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,118,'images/0118.png','images/0118.png',7,0,NULL,'5a4b8300',NULL,NULL,NULL,8,8,'{"filepath": "images/0118.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,119,'images/0119.png','images/0119.png',9,0,NULL,'44ae8eda',NULL,NULL,NULL,8,8,'{"filepath": "images/0119.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,120,'images/0120.png','images/0120.png',5,0,NULL,'b9c85848',NULL,NULL,NULL,8,8,'{"filepath": "images/0120.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,121,'images/0121.png','images/0121.png',3,0,NULL,'12a6dcb8',NULL,NULL,NULL,8,8,'{"filepath": "images/0121.png", "label": "3", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,122,'images/0122.png','images/0122.png',4,0,NULL,'a47f727e',NULL,NULL,NULL,8,8,'{"filepath": "images/0122.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,123,'images/0123.png','images/0123.png',8,0,NULL,'cf9aa0b4',NULL,NULL,NULL,8,8,'{"filepath": "images/0123.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,124,'images/0124.png','images/0124.png',4,0,NULL,'2d5c6b06',NULL,NULL,NULL,8,8,'{"filepath": "images/0124.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,125,'images/0125.png','images/0125.png',9,0,NULL,'58295dff',NULL,NULL,NULL,8,8,'{"filepath": "images/0125.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,126,'images/0126.png','images/0126.png',0,0,NULL,'459ee803',NULL,NULL,NULL,8,8,'{"filepath": "images/0126.png", "label": "0", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,127,'images/0127.png','images/0127.png',8,0,NULL,'1318fdac',NULL,NULL,NULL,8,8,'{"filepath": "images/0127.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,128,'images/0128.png','images/0128.png',9,0,NULL,'01da52cd',NULL,NULL,NULL,8,8,'{"filepath": "images/0128.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,129,'images/0129.png','images/0129.png',8,0,NULL,'5730ffdc',NULL,NULL,NULL,8,8,'{"filepath": "images/0129.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,130,'images/0130.png','images/0130.png',0,0,NULL,'edc99466',NULL,NULL,NULL,8,8,'{"filepath": "images/0130.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,131,'images/0131.png','images/0131.png',1,0,NULL,'e452ffe4',NULL,NULL,NULL,8,8,'{"filepath": "images/0131.png", "label": "1", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,132,'images/0132.png','images/0132.png',2,0,NULL,'e3282e65',NULL,NULL,NULL,8,8,'{"filepath": "images/0132.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,133,'images/0133.png','images/0133.png',1,0,NULL,'0dd1c359',NULL,NULL,NULL,8,8,'{"filepath": "images/0133.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,134,'images/0134.png','images/0134.png',4,0,NULL,'ed2fe086',NULL,NULL,NULL,8,8,'{"filepath": "images/0134.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,135,'images/0135.png','images/0135.png',5,0,NULL,'aa8a9bec',NULL,NULL,NULL,8,8,'{"filepath": "images/0135.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,136,'images/0136.png','images/0136.png',6,0,NULL,'850591c8',NULL,NULL,NULL,8,8,'{"filepath": "images/0136.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,137,'images/0137.png','images/0137.png',7,0,NULL,'44c64e3a',NULL,NULL,NULL,8,8,'{"filepath": "images/0137.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,138,'images/0138.png','images/0138.png',8,0,NULL,'a3b414ee',NULL,NULL,NULL,8,8,'{"filepath": "images/0138.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,139,'images/0139.png','images/0139.png',9,0,NULL,'97573e4c',NULL,NULL,NULL,8,8,'{"filepath": "images/0139.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,140,'images/0140.png','images/0140.png',6,0,NULL,'f416ce2b',NULL,NULL,NULL,8,8,'{"filepath": "images/0140.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,141,'images/0141.png','images/0141.png',1,0,NULL,'d2ebbd4b',NULL,NULL,NULL,8,8,'{"filepath": "images/0141.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,142,'images/0142.png','images/0142.png',2,0,NULL,'e32094b1',NULL,NULL,NULL,8,8,'{"filepath": "images/0142.png", "label": "2", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,143,'images/0143.png','images/0143.png',3,0,NULL,'fc3d566b',NULL,NULL,NULL,8,8,'{"filepath": "images/0143.png", "label": "3", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,144,'images/0144.png','images/0144.png',4,0,NULL,'4e75df8f',NULL,NULL,NULL,8,8,'{"filepath": "images/0144.png", "label": "4", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,145,'images/0145.png','images/0145.png',5,0,NULL,'27b6d3bd',NULL,NULL,NULL,8,8,'{"filepath": "images/0145.png", "label": "5", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,146,'images/0146.png','images/0146.png',6,0,NULL,'501afbf0',NULL,NULL,NULL,8,8,'{"filepath": "images/0146.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,147,'images/0147.png','images/0147.png',7,0,NULL,'d89043c2',NULL,NULL,NULL,8,8,'{"filepath": "images/0147.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,148,'images/0148.png','images/0148.png',8,0,NULL,'7dc5613d',NULL,NULL,NULL,8,8,'{"filepath": "images/0148.png", "label": "8", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,149,'images/0149.png','images/0149.png',9,0,NULL,'ef31a99c',NULL,NULL,NULL,8,8,'{"filepath": "images/0149.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,150,'images/0150.png','images/0150.png',7,0,NULL,'eeb288fc',NULL,NULL,NULL,8,8,'{"filepath": "images/0150.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,151,'images/0151.png','images/0151.png',5,0,NULL,'5e580006',NULL,NULL,NULL,8,8,'{"filepath": "images/0151.png", "label": "5", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,152,'images/0152.png','images/0152.png',2,0,NULL,'d53c4ede',NULL,NULL,NULL,8,8,'{"filepath": "images/0152.png", "label": "2", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,153,'images/0153.png','images/0153.png',3,0,NULL,'7805f5cb',NULL,NULL,NULL,8,8,'{"filepath": "images/0153.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,154,'images/0154.png','images/0154.png',4,0,NULL,'b30202a4',NULL,NULL,NULL,8,8,'{"filepath": "images/0154.png", "label": "4", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,155,'images/0155.png','images/0155.png',5,0,NULL,'d3c144cd',NULL,NULL,NULL,8,8,'{"filepath": "images/0155.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,156,'images/0156.png','images/0156.png',6,0,NULL,'d6d2160e',NULL,NULL,NULL,8,8,'{"filepath": "images/0156.png", "label": "6", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,157,'images/0157.png','images/0157.png',7,0,NULL,'dc947b1a',NULL,NULL,NULL,8,8,'{"filepath": "images/0157.png", "label": "7", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,158,'images/0158.png','images/0158.png',8,0,NULL,'0f5d1b03',NULL,NULL,NULL,8,8,'{"filepath": "images/0158.png", "label": "8", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,159,'images/0159.png','images/0159.png',9,0,NULL,'46b5437e',NULL,NULL,NULL,8,8,'{"filepath": "images/0159.png", "label": "9", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,160,'images/0160.png','images/0160.png',0,0,NULL,'538d2723',NULL,NULL,NULL,8,8,'{"filepath": "images/0160.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,161,'images/0161.png','images/0161.png',6,0,NULL,'692cf41b',NULL,NULL,NULL,8,8,'{"filepath": "images/0161.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,162,'images/0162.png','images/0162.png',5,0,NULL,'4081d238',NULL,NULL,NULL,8,8,'{"filepath": "images/0162.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,163,'images/0163.png','images/0163.png',5,0,NULL,'716c841d',NULL,NULL,NULL,8,8,'{"filepath": "images/0163.png", "label": "5", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,164,'images/0164.png','images/0164.png',6,0,NULL,'2f0a16db',NULL,NULL,NULL,8,8,'{"filepath": "images/0164.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,165,'images/0165.png','images/0165.png',5,0,NULL,'26ea9d69',NULL,NULL,NULL,8,8,'{"filepath": "images/0165.png", "label": "5", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,166,'images/0166.png','images/0166.png',0,0,NULL,'5707cbf4',NULL,NULL,NULL,8,8,'{"filepath": "images/0166.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,167,'images/0167.png','images/0167.png',9,0,NULL,'1a02aba6',NULL,NULL,NULL,8,8,'{"filepath": "images/0167.png", "label": "9", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,168,'images/0168.png','images/0168.png',8,0,NULL,'ac137398',NULL,NULL,NULL,8,8,'{"filepath": "images/0168.png", "label": "8", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,169,'images/0169.png','images/0169.png',9,0,NULL,'ab2d3147',NULL,NULL,NULL,8,8,'{"filepath": "images/0169.png", "label": "9", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,170,'images/0170.png','images/0170.png',8,0,NULL,'64c3e5ba',NULL,NULL,NULL,8,8,'{"filepath": "images/0170.png", "label": "8", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,171,'images/0171.png','images/0171.png',3,0,NULL,'8da42b73',NULL,NULL,NULL,8,8,'{"filepath": "images/0171.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,172,'images/0172.png','images/0172.png',1,0,NULL,'1b3883b4',NULL,NULL,NULL,8,8,'{"filepath": "images/0172.png", "label": "1", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,173,'images/0173.png','images/0173.png',7,0,NULL,'d0ca4b47',NULL,NULL,NULL,8,8,'{"filepath": "images/0173.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,174,'images/0174.png','images/0174.png',7,0,NULL,'c55a2b95',NULL,NULL,NULL,8,8,'{"filepath": "images/0174.png", "label": "7", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,175,'images/0175.png','images/0175.png',3,0,NULL,'1406d780',NULL,NULL,NULL,8,8,'{"filepath": "images/0175.png", "label": "3", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,176,'images/0176.png','images/0176.png',5,0,NULL,'1ba1f73d',NULL,NULL,NULL,8,8,'{"filepath": "images/0176.png", "label": "5", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,177,'images/0177.png','images/0177.png',1,0,NULL,'b0765042',NULL,NULL,NULL,8,8,'{"filepath": "images/0177.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,178,'images/0178.png','images/0178.png',0,0,NULL,'2ed206bf',NULL,NULL,NULL,8,8,'{"filepath": "images/0178.png", "label": "0", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,179,'images/0179.png','images/0179.png',0,0,NULL,'af23872d',NULL,NULL,NULL,8,8,'{"filepath": "images/0179.png", "label": "0", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,180,'images/0180.png','images/0180.png',2,0,NULL,'28bb8c28',NULL,NULL,NULL,8,8,'{"filepath": "images/0180.png", "label": "2", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,181,'images/0181.png','images/0181.png',2,0,NULL,'4132b271',NULL,NULL,NULL,8,8,'{"filepath": "images/0181.png", "label": "2", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,182,'images/0182.png','images/0182.png',7,0,NULL,'bfb1cf0a',NULL,NULL,NULL,8,8,'{"filepath": "images/0182.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,183,'images/0183.png','images/0183.png',3,0,NULL,'325fa78e',NULL,NULL,NULL,8,8,'{"filepath": "images/0183.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,184,'images/0184.png','images/0184.png',2,0,NULL,'23363ba3',NULL,NULL,NULL,8,8,'{"filepath": "images/0184.png", "label": "2", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,185,'images/0185.png','images/0185.png',6,0,NULL,'84227185',NULL,NULL,NULL,8,8,'{"filepath": "images/0185.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,186,'images/0186.png','images/0186.png',1,0,NULL,'6d398561',NULL,NULL,NULL,8,8,'{"filepath": "images/0186.png", "label": "1", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,187,'images/0187.png','images/0187.png',2,0,NULL,'97912536',NULL,NULL,NULL,8,8,'{"filepath": "images/0187.png", "label": "2", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,188,'images/0188.png','images/0188.png',6,0,NULL,'70db2b82',NULL,NULL,NULL,8,8,'{"filepath": "images/0188.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,189,'images/0189.png','images/0189.png',3,0,NULL,'fc86194f',NULL,NULL,NULL,8,8,'{"filepath": "images/0189.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,190,'images/0190.png','images/0190.png',3,0,NULL,'451f8653',NULL,NULL,NULL,8,8,'{"filepath": "images/0190.png", "label": "3", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,191,'images/0191.png','images/0191.png',7,0,NULL,'104f202f',NULL,NULL,NULL,8,8,'{"filepath": "images/0191.png", "label": "7", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,192,'images/0192.png','images/0192.png',3,0,NULL,'811d38cc',NULL,NULL,NULL,8,8,'{"filepath": "images/0192.png", "label": "3", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,193,'images/0193.png','images/0193.png',3,0,NULL,'4337242f',NULL,NULL,NULL,8,8,'{"filepath": "images/0193.png", "label": "3", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,194,'images/0194.png','images/0194.png',4,0,NULL,'7aa96268',NULL,NULL,NULL,8,8,'{"filepath": "images/0194.png", "label": "4", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,195,'images/0195.png','images/0195.png',6,0,NULL,'4a574092',NULL,NULL,NULL,8,8,'{"filepath": "images/0195.png", "label": "6", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,196,'images/0196.png','images/0196.png',6,0,NULL,'4bff1b6f',NULL,NULL,NULL,8,8,'{"filepath": "images/0196.png", "label": "6", "batch": "=lot1"}');
INSERT INTO "sample" VALUES(1,197,'images/0197.png','images/0197.png',6,0,NULL,'9aded209',NULL,NULL,NULL,8,8,'{"filepath": "images/0197.png", "label": "6", "batch": "=lot2"}');
INSERT INTO "sample" VALUES(1,198,'images/0198.png','images/0198.png',4,0,NULL,'04da6bf0',NULL,NULL,NULL,8,8,'{"filepath": "images/0198.png", "label": "4", "batch": "=lot0"}');
INSERT INTO "sample" VALUES(1,199,'images/0199.png','images/0199.png',9,0,NULL,'e415b3af',NULL,NULL,NULL,8,8,'{"filepath": "images/0199.png", "label": "9", "batch": "=lot1"}');
CREATE TABLE score (
	audit_id INTEGER NOT NULL, 
	sample_id INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	given_label INTEGER NOT NULL, 
	trust_score FLOAT, 
	error_probability FLOAT, 
	is_label_issue BOOLEAN NOT NULL, 
	suggested_label INTEGER NOT NULL, 
	suggested_probability FLOAT NOT NULL, 
	agreement INTEGER NOT NULL, 
	disagreement FLOAT NOT NULL, 
	PRIMARY KEY (audit_id, sample_id), 
	FOREIGN KEY(audit_id) REFERENCES audit (id)
);
INSERT INTO "score" VALUES(1,0,116,7,5.84999978542327880859e-01,0.0423725465828818,0,0,1.35776190636668181443e-01,1,0.0);
INSERT INTO "score" VALUES(1,1,99,1,0.5,6.89482717813244272431e-02,0,4,1.44966593395952386691e-01,0,0.0);
INSERT INTO "score" VALUES(1,2,5,2,2.74999998509883880615e-02,9.39662548119742702112e-01,1,7,0.142469105867068,1,0.0);
INSERT INTO "score" VALUES(1,3,128,9,6.4249998331069946289e-01,2.98199114828550555789e-02,0,4,1.38966773029771673009e-01,0,0.0);
INSERT INTO "score" VALUES(1,4,129,4,6.47499978542327880859e-01,2.8886740652193643869e-02,0,6,1.75417024204136906551e-01,1,0.0);
INSERT INTO "score" VALUES(1,5,57,5,2.89999991655349731445e-01,2.20994177140305142481e-01,0,9,1.36509993858619338436e-01,1,0.0);
INSERT INTO "score" VALUES(1,6,178,6,8.94999980926513671875e-01,2.96693930154579444541e-03,0,8,1.46855162243873321736e-01,0,0.0);
INSERT INTO "score" VALUES(1,7,58,1,2.89999991655349731445e-01,2.20994177140305142481e-01,0,7,1.49978275643228159408e-01,1,0.0);
INSERT INTO "score" VALUES(1,8,62,8,0.3125,1.94618905663853036802e-01,0,7,1.53930488741902099514e-01,1,0.0);
INSERT INTO "score" VALUES(1,9,92,9,4.62500005960464477539e-01,8.49018821538263662729e-02,0,3,1.43985004994834742131e-01,1,0.0);
INSERT INTO "score" VALUES(1,10,95,0,4.79999989271163940429e-01,7.70660964327457148614e-02,0,6,1.45619552411268837754e-01,1,0.0);
INSERT INTO "score" VALUES(1,11,162,1,8.14999997615814208984e-01,7.94522891006616861775e-03,0,4,1.72948046959361251273e-01,0,0.0);
INSERT INTO "score" VALUES(1,12,63,2,3.17499995231628417968e-01,1.89228466469884559764e-01,0,6,1.59684015914133392577e-01,1,0.0);
INSERT INTO "score" VALUES(1,13,80,8,4.05000001192092895507e-01,1.16505477965464482315e-01,0,4,1.38769840608016503669e-01,1,0.0);
INSERT INTO "score" VALUES(1,14,50,4,2.52499997615814208984e-01,2.73890250129872947493e-01,0,6,1.57830719577730566038e-01,1,0.0);
INSERT INTO "score" VALUES(1,15,147,5,7.40000009536743164062e-01,1.51885072396613484552e-02,0,6,1.31618459082358446599e-01,0,0.0);
INSERT INTO "score" VALUES(1,16,164,6,8.22499990463256835937e-01,7.36938016024250418939e-03,0,7,1.58266832063009815767e-01,0,0.0);
INSERT INTO "score" VALUES(1,17,161,7,8.07500004768371582031e-01,8.54583493657439831336e-03,0,3,1.37169827790376175347e-01,0,0.0);
INSERT INTO "score" VALUES(1,18,33,8,1.70000001788139343261e-01,4.44105243054481679809e-01,1,7,1.63968502397166981943e-01,1,0.0);
INSERT INTO "score" VALUES(1,19,132,9,6.67500019073486328125e-01,2.53745207520438970094e-02,0,6,1.46425739275254152005e-01,0,0.0);
INSERT INTO "score" VALUES(1,20,72,0,3.65000009536743164062e-01,1.45248229647052140567e-01,0,7,1.28057369938640835949e-01,1,0.0);
INSERT INTO "score" VALUES(1,21,156,1,7.82500028610229492187e-01,1.0735548558680241965e-02,0,4,1.6711602013423246249e-01,0,0.0);
INSERT INTO "score" VALUES(1,22,36,2,1.82500004768371582031e-01,4.12483711762869686978e-01,1,6,1.43540766633155736364e-01,1,0.0);
INSERT INTO "score" VALUES(1,23,70,3,3.54999989271163940429e-01,1.535195173013072234e-01,0,4,1.47620663672061697146e-01,0,0.0);
INSERT INTO "score" VALUES(1,24,110,4,5.52500009536743164062e-01,5.12162663617006866378e-02,0,6,1.58177761644122588657e-01,1,0.0);
INSERT INTO "score" VALUES(1,25,38,5,1.92499995231628417968e-01,0.388840699190932,1,3,1.48927929782793677659e-01,1,0.0);
INSERT INTO "score" VALUES(1,26,183,6,9.17500019073486328125e-01,1.99275962574793630288e-03,0,8,1.38631009320011544527e-01,0,0.0);
INSERT INTO "score" VALUES(1,27,146,7,7.32500016689300537109e-01,1.60799088842144555222e-02,0,4,1.43849586608306712065e-01,0,0.0);
INSERT INTO "score" VALUES(1,28,17,8,9.00000035762786865234e-02,7.04223990287609402649e-01,1,7,1.58513548202647097662e-01,1,0.0);
INSERT INTO "score" VALUES(1,29,173,9,8.67500007152557373046e-01,4.40102228808804830234e-03,0,6,1.38445593032421238044e-01,0,0.0);
INSERT INTO "score" VALUES(1,30,29,0,1.47499993443489074707e-01,0.50713934716403,1,6,1.51711931835511210087e-01,1,0.0);
INSERT INTO "score" VALUES(1,31,149,9,0.75,1.40514755993842530706e-02,0,4,1.35773706358881834921e-01,0,0.0);
INSERT INTO "score" VALUES(1,32,79,3,3.97500008344650268554e-01,1.21412757244815955326e-01,0,8,1.51765650733763912683e-01,1,0.0);
INSERT INTO "score" VALUES(1,33,124,5,6.22500002384185791015e-01,3.37899476928681941068e-02,0,3,0.141711354065674,0,0.0);
INSERT INTO "score" VALUES(1,34,187,6,0.9375,1.27309096814029985844e-03,0,4,1.45672669001465693305e-01,0,0.0);
INSERT INTO "score" VALUES(1,35,127,5,0.637499988079071,3.07762285055860340676e-02,0,3,1.45173897956134861919e-01,0,0.0);
INSERT INTO "score" VALUES(1,36,42,0,2.15000003576278686523e-01,3.4065205473928866775e-01,0,6,1.45285591623736443089e-01,1,0.0);
INSERT INTO "score" VALUES(1,37,90,9,4.52499985694885253906e-01,8.97169268473263364915e-02,0,6,1.68277169891694500236e-01,1,0.0);
INSERT INTO "score" VALUES(1,38,68,8,3.42500001192092895507e-01,1.64557888289856762975e-01,0,6,1.37575368369992179218e-01,1,0.0);
INSERT INTO "score" VALUES(1,39,98,9,4.92500007152557373046e-01,0.0718938780467977,0,4,1.27211696520201061888e-01,1,0.0);
INSERT INTO "score" VALUES(1,40,45,8,2.30000004172325134277e-01,0.312063139199043,0,7,1.59710625498113351072e-01,1,0.0);
INSERT INTO "score" VALUES(1,41,65,4,3.30000013113021850585e-01,1.76436328186966168152e-01,0,6,1.69158369137564212891e-01,1,0.0);
INSERT INTO "score" VALUES(1,42,159,1,0.800000011920929,9.17186950048303785421e-03,0,3,1.48383384572021187475e-01,0,0.0);
INSERT INTO "score" VALUES(1,43,160,7,0.800000011920929,9.17186950048303785421e-03,0,4,1.38807623325611612097e-01,0,0.0);
INSERT INTO "score" VALUES(1,44,158,7,7.92500019073486328125e-01,9.824039999349725924e-03,0,4,1.4250302508689108305e-01,0,0.0);
INSERT INTO "score" VALUES(1,45,43,3,2.15000003576278686523e-01,3.4065205473928866775e-01,0,4,1.46012171031326604131e-01,1,0.0);
INSERT INTO "score" VALUES(1,46,153,5,7.72499978542327880859e-01,1.16967244221820830529e-02,0,7,1.42910320494611220443e-01,0,0.0);
INSERT INTO "score" VALUES(1,47,152,1,0.762499988079071,1.27095508151099829963e-02,0,4,1.47277192827525132967e-01,0,0.0);
INSERT INTO "score" VALUES(1,48,93,7,4.69999998807907104492e-01,8.14548767105416071654e-02,0,6,1.61560219434736168642e-01,1,0.0);
INSERT INTO "score" VALUES(1,49,75,0,3.77499997615814208984e-01,1.35556350686810711536e-01,0,6,1.46260999373903244347e-01,1,0.0);
INSERT INTO "score" VALUES(1,50,1,2,7.49999983236193656921e-03,9.91207525375884856977e-01,1,7,1.47145493849111103079e-01,1,0.0);
INSERT INTO "score" VALUES(1,51,11,2,5.99999986588954925537e-02,8.21177369972070358983e-01,1,7,1.61771677663998331153e-01,1,0.0);
INSERT INTO "score" VALUES(1,52,145,7,7.2750002145767211914e-01,1.66931702567619869026e-02,0,4,1.39173695338043967861e-01,0,0.0);
INSERT INTO "score" VALUES(1,53,19,8,9.74999964237213134765e-02,0.675905083180831,1,7,1.6134056871178495407e-01,1,0.0);
INSERT INTO "score" VALUES(1,54,24,0,0.125,5.78326415813546823585e-01,1,7,0.15551162018091,1,0.0);
INSERT INTO "score" VALUES(1,55,51,4,2.62499988079071044921e-01,2.58565898655642112391e-01,0,7,1.48008662983209693386e-01,1,0.0);
INSERT INTO "score" VALUES(1,56,118,1,5.92499971389770507812e-01,4.05267171304165910172e-02,0,3,1.64058037417956575909e-01,0,0.0);
INSERT INTO "score" VALUES(1,57,2,2,1.49999996647238731384e-02,9.75251461145638876004e-01,1,4,1.4872208588191829226e-01,1,0.0);
INSERT INTO "score" VALUES(1,58,193,6,9.67499971389770507812e-01,0.000455722829251998,0,8,1.43089576333888357506e-01,0,0.0);
INSERT INTO "score" VALUES(1,59,111,3,5.57500004768371582031e-01,4.97605555844555166866e-02,0,7,1.35497617172859852185e-01,0,0.0);
INSERT INTO "score" VALUES(1,60,74,3,3.72500002384185791015e-01,1.39350095903777393413e-01,0,4,1.48876151352499902502e-01,1,0.0);
INSERT INTO "score" VALUES(1,61,185,7,9.30000007152557373046e-01,1.52689267645882988631e-03,0,4,1.40677145716424312205e-01,0,0.0);
INSERT INTO "score" VALUES(1,62,112,3,5.67499995231628417968e-01,4.69561868637413948324e-02,0,7,1.49121356365997187465e-01,0,0.0);
INSERT INTO "score" VALUES(1,63,86,3,4.35000002384185791015e-01,9.87902810409647252898e-02,0,7,0.149916899119426,1,0.0);
INSERT INTO "score" VALUES(1,64,13,4,6.75000026822090148925e-02,0.791774329517063,1,6,1.91289798572660485476e-01,1,0.0);
INSERT INTO "score" VALUES(1,65,199,6,9.97500002384185791015e-01,2.63790106528657281037e-05,0,0,1.27677938177049060675e-01,0,0.0);
INSERT INTO "score" VALUES(1,66,197,6,0.987500011920929,1.0545386646649751775e-04,0,8,1.29254035589154048224e-01,0,0.0);
INSERT INTO "score" VALUES(1,67,188,6,9.42499995231628417968e-01,1.11466662229219698986e-03,0,8,1.51760045957348127521e-01,0,0.0);
INSERT INTO "score" VALUES(1,68,26,4,1.32499992847442626953e-01,5.53689977465294691505e-01,1,6,1.52605963775449826602e-01,1,0.0);
INSERT INTO "score" VALUES(1,69,35,9,1.77499994635581970214e-01,4.24850800982637888392e-01,1,5,1.42587005600250144032e-01,1,0.0);
INSERT INTO "score" VALUES(1,70,139,1,6.97499990463256835937e-01,2.07124553463424974919e-02,0,3,1.5138972477304030173e-01,0,0.0);
INSERT INTO "score" VALUES(1,71,121,5,6.10000014305114746093e-01,3.64765683344727212333e-02,0,8,1.40380550419899413627e-01,0,0.0);
INSERT INTO "score" VALUES(1,72,82,0,4.1249999403953552246e-01,1.11798727048027637942e-01,0,6,1.45110812124276372658e-01,1,0.0);
INSERT INTO "score" VALUES(1,73,130,9,6.52499973773956298828e-01,2.79761538969253154007e-02,0,4,1.39087079243710387554e-01,0,0.0);
INSERT INTO "score" VALUES(1,74,40,5,2.04999998211860656738e-01,3.61246036491478295094e-01,0,3,1.50221398723838828193e-01,1,0.0);
INSERT INTO "score" VALUES(1,75,7,2,3.75000014901161193847e-02,9.0592220071321027941e-01,1,7,1.59335817553735936691e-01,1,0.0);
INSERT INTO "score" VALUES(1,76,25,8,0.125,5.78326415813546823585e-01,1,7,1.40888317622947456531e-01,1,0.0);
INSERT INTO "score" VALUES(1,77,0,2,2.49999994412064552307e-03,9.9521274303880835621e-01,1,7,1.65759295625313080035e-01,1,0.0);
INSERT INTO "score" VALUES(1,78,107,0,5.37500023841857910156e-01,5.58096103320565167793e-02,0,6,1.32292571041768752815e-01,0,0.0);
INSERT INTO "score" VALUES(1,79,123,0,6.17500007152557373046e-01,0.0348448348198682,0,6,1.46660377900899946412e-01,0,0.0);
INSERT INTO "score" VALUES(1,80,175,1,8.82499992847442626953e-01,3.58488028301208851503e-03,0,4,1.53674675922827103091e-01,0,0.0);
INSERT INTO "score" VALUES(1,81,165,7,8.2999998331069946289e-01,6.81765289896018190224e-03,0,4,1.44272305224073665863e-01,0,0.0);
INSERT INTO "score" VALUES(1,82,196,6,9.82500016689300537109e-01,1.76007320218685115679e-04,0,7,1.36946855496990843592e-01,0,0.0);
INSERT INTO "score" VALUES(1,83,91,3,4.5750001072883605957e-01,8.72773113071196732226e-02,0,7,1.5288668339138991592e-01,0,0.0);
INSERT INTO "score" VALUES(1,84,12,2,5.99999986588954925537e-02,8.21177369972070358983e-01,1,6,1.8983458003447611917e-01,1,0.0);
INSERT INTO "score" VALUES(1,85,133,1,6.67500019073486328125e-01,2.53745207520438970094e-02,0,7,1.60957193224373740214e-01,0,0.0);
INSERT INTO "score" VALUES(1,86,168,7,8.42499971389770507812e-01,5.95009467278211686552e-03,0,4,1.40322220667940505967e-01,0,0.0);
INSERT INTO "score" VALUES(1,87,27,4,1.37500002980232238769e-01,5.37767552701518769531e-01,1,6,1.43049914759509400052e-01,1,0.0);
INSERT INTO "score" VALUES(1,88,182,6,9.12500023841857910156e-01,2.19410907261179772761e-03,0,4,1.33736293325854765923e-01,0,0.0);
INSERT INTO "score" VALUES(1,89,113,3,5.67499995231628417968e-01,4.69561868637413948324e-02,0,7,1.47287869023290413084e-01,0,0.0);
INSERT INTO "score" VALUES(1,90,172,1,0.862500011920929,4.69161711933024742904e-03,0,7,1.51692431361480584151e-01,0,0.0);
INSERT INTO "score" VALUES(1,91,141,7,7.07499980926513671875e-01,1.9305563616284566325e-02,0,3,1.63691034300693510905e-01,1,0.0);
INSERT INTO "score" VALUES(1,92,89,9,4.47499990463256835937e-01,9.22226901880102423181e-02,0,3,1.38133941871755733243e-01,1,0.0);
INSERT INTO "score" VALUES(1,93,150,1,0.75,1.40514755993842530706e-02,0,7,1.49743861826138247028e-01,0,0.0);
INSERT INTO "score" VALUES(1,94,186,7,9.30000007152557373046e-01,1.52689267645882988631e-03,0,4,1.34243837677448796252e-01,0,0.0);
INSERT INTO "score" VALUES(1,95,31,4,1.59999996423721313476e-01,4.7112811798188836132e-01,1,6,2.12321014287690568167e-01,1,0.0);
INSERT INTO "score" VALUES(1,96,88,8,4.42499995231628417968e-01,9.47966785075578105557e-02,0,7,1.50004418883885187741e-01,1,0.0);
INSERT INTO "score" VALUES(1,97,61,4,3.07500004768371582031e-01,2.00173777408945069433e-01,0,6,1.76648276227418049577e-01,1,0.0);
INSERT INTO "score" VALUES(1,98,64,3,3.22499990463256835937e-01,1.83996995485686931637e-01,0,7,0.150976926393775,0,0.0);
INSERT INTO "score" VALUES(1,99,102,1,5.14999985694885253906e-01,6.33885528903607164963e-02,0,7,1.5941223129421056015e-01,1,0.0);
INSERT INTO "score" VALUES(1,100,47,4,2.42500007152557373046e-01,2.90197380560466344778e-01,0,6,1.65785129487446614149e-01,1,0.0);
INSERT INTO "score" VALUES(1,101,39,0,1.97500005364418029785e-01,3.77548084747284906637e-01,1,6,1.77832157415674263489e-01,1,0.0);
INSERT INTO "score" VALUES(1,102,37,5,0.1875,4.00483076095765611057e-01,1,3,1.49533144006314899776e-01,1,0.0);
INSERT INTO "score" VALUES(1,103,41,3,2.04999998211860656738e-01,3.61246036491478295094e-01,0,7,1.68649515751927797646e-01,1,0.0);
INSERT INTO "score" VALUES(1,104,171,6,8.57500016689300537109e-01,4.99168645680157351679e-03,0,7,1.38932176281952757257e-01,0,0.0);
INSERT INTO "score" VALUES(1,105,48,2,2.42500007152557373046e-01,2.90197380560466344778e-01,0,9,1.62052793673918393846e-01,1,0.0);
INSERT INTO "score" VALUES(1,106,180,6,9.02499973773956298828e-01,2.62268036136882902106e-03,0,4,1.65685577324976629487e-01,0,0.0);
INSERT INTO "score" VALUES(1,107,151,1,7.57499992847442626953e-01,0.0132359938830471,0,4,1.68857151615170369973e-01,0,0.0);
INSERT INTO "score" VALUES(1,108,154,7,7.72499978542327880859e-01,1.16967244221820830529e-02,0,4,1.41545073396193404891e-01,0,0.0);
INSERT INTO "score" VALUES(1,109,52,4,2.62499988079071044921e-01,2.58565898655642112391e-01,0,5,1.45263693293450735222e-01,1,0.0);
INSERT INTO "score" VALUES(1,110,104,4,5.22499978542327880859e-01,6.07651337400868588045e-02,0,6,1.42564639614895349861e-01,1,0.0);
INSERT INTO "score" VALUES(1,111,87,4,4.35000002384185791015e-01,9.87902810409647252898e-02,0,6,1.50969886927980051494e-01,1,0.0);
INSERT INTO "score" VALUES(1,112,148,7,7.40000009536743164062e-01,1.51885072396613484552e-02,0,4,1.33033869800051107734e-01,0,0.0);
INSERT INTO "score" VALUES(1,113,59,9,3.00000011920928955078e-01,2.08826818783642981225e-01,0,7,1.63012906528905904268e-01,1,0.0);
INSERT INTO "score" VALUES(1,114,16,8,8.25000032782554626464e-02,7.33083369074661428399e-01,1,7,1.58756482825245098799e-01,1,0.0);
INSERT INTO "score" VALUES(1,115,85,4,4.27500009536743164062e-01,1.0294976745083914138e-01,0,7,1.76652819230788071802e-01,1,0.0);
INSERT INTO "score" VALUES(1,116,9,2,5.00000007450580596923e-02,8.59808476092621232211e-01,1,7,0.141086780356507,1,0.0);
INSERT INTO "score" VALUES(1,117,140,5,7.02499985694885253906e-01,2.00003006237494049268e-02,0,7,1.35761361340777125805e-01,0,0.0);
INSERT INTO "score" VALUES(1,118,191,7,9.59999978542327880859e-01,6.29447660942161237029e-04,0,5,1.36803137889371262403e-01,0,0.0);
INSERT INTO "score" VALUES(1,119,126,9,6.32499992847442626953e-01,3.17562715753620800063e-02,0,4,1.55198443976419769851e-01,1,0.0);
INSERT INTO "score" VALUES(1,120,96,5,4.79999989271163940429e-01,7.70660964327457148614e-02,0,3,1.41828347419205164081e-01,1,0.0);
INSERT INTO "score" VALUES(1,121,122,3,6.10000014305114746093e-01,3.64765683344727212333e-02,0,6,0.135760486191442,1,0.0);
INSERT INTO "score" VALUES(1,122,71,4,3.54999989271163940429e-01,1.535195173013072234e-01,0,7,1.75020628658820787126e-01,1,0.0);
INSERT INTO "score" VALUES(1,123,76,8,3.82499992847442626953e-01,1.31869113223637618448e-01,0,7,1.53429613886576776682e-01,1,0.0);
INSERT INTO "score" VALUES(1,124,60,4,3.00000011920928955078e-01,2.08826818783642981225e-01,0,6,1.61799869271537666293e-01,1,0.0);
INSERT INTO "score" VALUES(1,125,106,9,5.32500028610229492187e-01,5.74196929816908271937e-02,0,3,1.42726733625346074996e-01,1,0.0);
INSERT INTO "score" VALUES(1,126,30,0,1.52500003576278686523e-01,4.92433333885317958689e-01,1,6,1.59314908885570233332e-01,1,0.0);
INSERT INTO "score" VALUES(1,127,77,8,3.87499988079071044921e-01,1.28284955434828207287e-01,0,7,1.44125032366508698533e-01,1,0.0);
INSERT INTO "score" VALUES(1,128,54,9,2.72500008344650268554e-01,2.44161971164421454094e-01,0,4,1.47927024953457469935e-01,1,0.0);
INSERT INTO "score" VALUES(1,129,55,8,2.80000001192092895507e-01,2.33927442702081683778e-01,0,7,1.66269890188574465117e-01,1,0.0);
INSERT INTO "score" VALUES(1,130,44,0,2.22499996423721313476e-01,3.26024010930733409985e-01,0,6,0.148063070602792,1,0.0);
INSERT INTO "score" VALUES(1,131,176,1,8.82499992847442626953e-01,3.58488028301208851503e-03,0,4,1.72031304454933670067e-01,0,0.0);
INSERT INTO "score" VALUES(1,132,14,2,7.24999979138374328613e-02,7.72134127319731189409e-01,1,6,1.58526341141577042925e-01,1,0.0);
INSERT INTO "score" VALUES(1,133,53,1,2.62499988079071044921e-01,2.58565898655642112391e-01,0,7,1.49881914048098585645e-01,1,0.0);
INSERT INTO "score" VALUES(1,134,21,4,1.1249999701976776123e-01,6.21336462470164829774e-01,1,7,1.49784501832029154355e-01,1,0.0);
INSERT INTO "score" VALUES(1,135,134,5,6.67500019073486328125e-01,2.53745207520438970094e-02,0,7,1.37918020685764169952e-01,0,0.0);
INSERT INTO "score" VALUES(1,136,189,6,0.949999988079071,8.93369615289434614024e-04,0,8,1.42484820155573399524e-01,0,0.0);
INSERT INTO "score" VALUES(1,137,169,7,8.50000023841857910156e-01,5.45984451828817381885e-03,0,4,1.47965266288455521426e-01,0,0.0);
INSERT INTO "score" VALUES(1,138,69,8,3.47499996423721313476e-01,1.60045635805948410768e-01,0,7,1.51940805512339210947e-01,1,0.0);
INSERT INTO "score" VALUES(1,139,101,9,5.07499992847442626953e-01,6.61147544548855714552e-02,0,4,1.60785682652821532157e-01,1,0.0);
INSERT INTO "score" VALUES(1,140,78,6,3.92500013113021850585e-01,1.24800551763413355987e-01,0,7,1.43293730257524259963e-01,0,0.0);
INSERT INTO "score" VALUES(1,141,157,1,7.87500023841857910156e-01,1.02737063320702155799e-02,0,4,1.64277165116290452262e-01,0,0.0);
INSERT INTO "score" VALUES(1,142,10,2,5.00000007450580596923e-02,8.59808476092621232211e-01,1,7,1.71860171009601825353e-01,1,0.0);
INSERT INTO "score" VALUES(1,143,117,3,5.84999978542327880859e-01,0.0423725465828818,0,4,1.47185270023162867447e-01,0,0.0);
INSERT INTO "score" VALUES(1,144,20,4,1.02499999105930328369e-01,6.57386063669415099397e-01,1,6,1.51178401521936706108e-01,1,0.0);
INSERT INTO "score" VALUES(1,145,94,5,4.69999998807907104492e-01,8.14548767105416071654e-02,0,7,1.44517671870967617797e-01,1,0.0);
INSERT INTO "score" VALUES(1,146,167,6,8.37499976158142089843e-01,6.28944632400703449587e-03,0,7,1.34413726556077972595e-01,0,0.0);
INSERT INTO "score" VALUES(1,147,170,7,8.50000023841857910156e-01,5.45984451828817381885e-03,0,4,1.4107987114392320227e-01,0,0.0);
INSERT INTO "score" VALUES(1,148,100,8,0.5,6.89482717813244272431e-02,0,6,1.60713674970938108499e-01,1,0.0);
INSERT INTO "score" VALUES(1,149,125,9,6.27499997615814208984e-01,3.27606389021401628314e-02,0,3,1.46226258118497515203e-01,1,0.0);
INSERT INTO "score" VALUES(1,150,49,7,2.42500007152557373046e-01,2.90197380560466344778e-01,0,6,1.61634467234820111691e-01,1,0.0);
INSERT INTO "score" VALUES(1,151,6,5,3.24999988079071044921e-02,9.23243487363277104407e-01,1,1,1.88152311936656130297e-01,1,0.0);
INSERT INTO "score" VALUES(1,152,4,2,2.25000008940696716308e-02,9.54966349923693891277e-01,1,7,1.54673582039677376398e-01,1,0.0);
INSERT INTO "score" VALUES(1,153,97,3,4.87500011920928955078e-01,7.3922358840985066819e-02,0,7,1.44993521474106795698e-01,0,0.0);
INSERT INTO "score" VALUES(1,154,15,4,7.75000005960464477539e-02,7.52549432035351739678e-01,1,7,1.72024707044109936848e-01,1,0.0);
INSERT INTO "score" VALUES(1,155,131,5,6.57500028610229492187e-01,2.70875957832429868632e-02,0,6,1.33732795233700657577e-01,0,0.0);
INSERT INTO "score" VALUES(1,156,198,6,9.92500007152557373046e-01,4.86434023777954728301e-05,0,8,1.40004533824707427802e-01,0,0.0);
INSERT INTO "score" VALUES(1,157,177,7,8.82499992847442626953e-01,3.58488028301208851503e-03,0,4,1.41739273405358773283e-01,0,0.0);
INSERT INTO "score" VALUES(1,158,66,8,3.30000013113021850585e-01,1.76436328186966168152e-01,0,7,1.46914265608765221005e-01,1,0.0);
INSERT INTO "score" VALUES(1,159,143,9,7.17499971389770507812e-01,1.79667968859464517727e-02,0,4,1.56785019554732146795e-01,0,0.0);
INSERT INTO "score" VALUES(1,160,120,0,6.0250002145767211914e-01,3.81696447367763369573e-02,0,6,1.48409139077482016277e-01,1,0.0);
INSERT INTO "score" VALUES(1,161,8,6,4.25000004470348358154e-02,8.87880724731825554663e-01,1,4,1.73398797295400364237e-01,1,0.0);
INSERT INTO "score" VALUES(1,162,108,5,5.42500019073486328125e-01,5.42397424078858853002e-02,0,3,1.36236621465346680048e-01,0,0.0);
INSERT INTO "score" VALUES(1,163,155,5,7.72499978542327880859e-01,1.16967244221820830529e-02,0,7,1.36260474868030362349e-01,0,0.0);
INSERT INTO "score" VALUES(1,164,184,6,9.22500014305114746093e-01,1.79998964000426821784e-03,0,8,1.45570001281683070182e-01,0,0.0);
INSERT INTO "score" VALUES(1,165,138,5,6.92499995231628417968e-01,2.14424291496963063952e-02,0,8,1.28208543174791939067e-01,0,0.0);
INSERT INTO "score" VALUES(1,166,83,0,4.17499989271163940429e-01,1.0876764433095191531e-01,0,6,1.45395876086018838169e-01,1,0.0);
INSERT INTO "score" VALUES(1,167,84,9,4.22500014305114746093e-01,1.05818832988596275845e-01,0,4,1.57618264650522366121e-01,1,0.0);
INSERT INTO "score" VALUES(1,168,56,8,2.80000001192092895507e-01,2.33927442702081683778e-01,0,7,1.50845335829329407761e-01,1,0.0);
INSERT INTO "score" VALUES(1,169,142,9,7.12499976158142089843e-01,1.86278549512689794998e-02,0,4,1.55932348405601162166e-01,1,0.0);
INSERT INTO "score" VALUES(1,170,73,8,3.65000009536743164062e-01,1.45248229647052140567e-01,0,7,1.52619136267149180241e-01,1,0.0);
INSERT INTO "score" VALUES(1,171,22,3,1.1249999701976776123e-01,6.21336462470164829774e-01,1,7,1.5256891144401404925e-01,1,0.0);
INSERT INTO "score" VALUES(1,172,136,1,6.82500004768371582031e-01,2.2957501713473212751e-02,0,4,1.84478273466028214189e-01,0,0.0);
INSERT INTO "score" VALUES(1,173,166,7,8.2999998331069946289e-01,6.81765289896018190224e-03,0,1,1.39333557802131441372e-01,0,0.0);
INSERT INTO "score" VALUES(1,174,190,7,0.949999988079071,8.93369615289434614024e-04,0,3,1.35514108996254434291e-01,0,0.0);
INSERT INTO "score" VALUES(1,175,103,3,5.14999985694885253906e-01,6.33885528903607164963e-02,0,4,1.46860639670234660592e-01,0,0.0);
INSERT INTO "score" VALUES(1,176,109,5,5.47500014305114746093e-01,5.27089840292291958445e-02,0,6,1.40365626303462887047e-01,0,0.0);
INSERT INTO "score" VALUES(1,177,163,1,8.14999997615814208984e-01,7.94522891006616861775e-03,0,4,1.71031708132221849094e-01,0,0.0);
INSERT INTO "score" VALUES(1,178,46,0,2.30000004172325134277e-01,0.312063139199043,0,6,1.6319306427654348135e-01,1,0.0);
INSERT INTO "score" VALUES(1,179,28,0,1.42499998211860656738e-01,5.22250417924764676058e-01,1,6,1.50680759544142672812e-01,1,0.0);
INSERT INTO "score" VALUES(1,180,3,2,1.49999996647238731384e-02,9.75251461145638876004e-01,1,6,1.41317067989682659812e-01,1,0.0);
INSERT INTO "score" VALUES(1,181,18,2,9.00000035762786865234e-02,7.04223990287609402649e-01,1,7,1.53202506721261816347e-01,1,0.0);
INSERT INTO "score" VALUES(1,182,174,7,8.72500002384185791015e-01,4.11977778633316159273e-03,0,1,1.50803461523037612979e-01,0,0.0);
INSERT INTO "score" VALUES(1,183,34,3,1.70000001788139343261e-01,4.44105243054481679809e-01,1,7,1.4024262705078488489e-01,1,0.0);
INSERT INTO "score" VALUES(1,184,23,2,1.1249999701976776123e-01,6.21336462470164829774e-01,1,6,1.66008112841446314744e-01,1,0.0);
INSERT INTO "score" VALUES(1,185,144,6,7.22500026226043701171e-01,1.73220153688237107902e-02,0,7,1.47600779827940065125e-01,0,0.0);
INSERT INTO "score" VALUES(1,186,179,1,8.94999980926513671875e-01,2.96693930154579444541e-03,0,4,0.161431175643569,0,0.0);
INSERT INTO "score" VALUES(1,187,32,2,1.59999996423721313476e-01,4.7112811798188836132e-01,1,6,1.56902328878507940634e-01,1,0.0);
INSERT INTO "score" VALUES(1,188,181,6,9.07500028610229492187e-01,2.40406757267955326767e-03,0,8,1.59059195566504357755e-01,0,0.0);
INSERT INTO "score" VALUES(1,189,135,3,6.77500009536743164062e-01,2.37434666579707728817e-02,0,4,1.50854300228674215178e-01,0,0.0);
INSERT INTO "score" VALUES(1,190,119,3,5.97500026226043701171e-01,3.93336322038592561822e-02,0,7,1.54232226867372146372e-01,1,0.0);
INSERT INTO "score" VALUES(1,191,137,7,0.6875,2.21906357709668461408e-02,0,4,1.43981248169254560931e-01,0,0.0);
INSERT INTO "score" VALUES(1,192,114,3,5.67499995231628417968e-01,4.69561868637413948324e-02,0,4,1.47839983084735782092e-01,0,0.0);
INSERT INTO "score" VALUES(1,193,115,3,5.77499985694885253906e-01,4.42882602401556343951e-02,0,7,1.43059860906619207288e-01,0,0.0);
INSERT INTO "score" VALUES(1,194,67,4,3.37500005960464477539e-01,1.69204481117810140444e-01,0,1,1.90518083610269894911e-01,1,0.0);
INSERT INTO "score" VALUES(1,195,192,6,9.59999978542327880859e-01,6.29447660942161237029e-04,0,7,1.35317485420620331471e-01,0,0.0);
INSERT INTO "score" VALUES(1,196,195,6,9.7750002145767211914e-01,2.58544478771910500678e-04,0,8,1.49400461702763526217e-01,0,0.0);
INSERT INTO "score" VALUES(1,197,194,6,9.72500026226043701171e-01,3.52014583662769043465e-04,0,8,1.43577912434470877922e-01,0,0.0);
INSERT INTO "score" VALUES(1,198,81,4,4.05000001192092895507e-01,1.16505477965464482315e-01,0,7,1.73585116935183830788e-01,1,0.0);
INSERT INTO "score" VALUES(1,199,105,9,5.27499973773956298828e-01,5.90711532077125220374e-02,0,3,1.39617914245806939987e-01,1,0.0);
INSERT INTO "score" VALUES(2,0,49,7,2.47500002384185791015e-01,0.0807464347763702,0,0,1.48682095530821151152e-01,1,0.0);
INSERT INTO "score" VALUES(2,1,187,1,9.39999997615814208984e-01,1.69052645785580657467e-02,0,4,1.56061955846802741243e-01,0,0.0);
INSERT INTO "score" VALUES(2,2,3,2,1.75000000745058059692e-02,2.31223720233028673387e-01,1,1,1.72815508734851464023e-01,1,0.0);
INSERT INTO "score" VALUES(2,3,75,9,3.87499988079071044921e-01,6.248100631255098375e-02,0,4,1.58382174406752562756e-01,1,0.0);
INSERT INTO "score" VALUES(2,4,98,4,4.92500007152557373046e-01,5.27017137784194233951e-02,0,6,1.59099431997677231986e-01,0,0.0);
INSERT INTO "score" VALUES(2,5,13,5,6.75000026822090148925e-02,1.42671185378439674407e-01,1,4,1.3630662027972695327e-01,1,0.0);
INSERT INTO "score" VALUES(2,6,159,6,0.800000011920929,2.96901875722166107285e-02,0,4,1.47867490405323515068e-01,0,0.0);
INSERT INTO "score" VALUES(2,7,137,1,0.6875,3.7889842139724336234e-02,0,7,1.65870735740360653043e-01,1,0.0);
INSERT INTO "score" VALUES(2,8,148,8,7.42500007152557373046e-01,3.39395322153560607958e-02,0,4,1.45068866764576559491e-01,0,0.0);
INSERT INTO "score" VALUES(2,9,104,9,5.22499978542327880859e-01,0.0502281674194447,0,1,1.54848425335339184849e-01,1,0.0);
INSERT INTO "score" VALUES(2,10,127,0,0.637499988079071,4.14901477148609532097e-02,0,3,1.23025804007171279952e-01,0,0.0);
INSERT INTO "score" VALUES(2,11,196,1,9.82500016689300537109e-01,9.93362322232886098272e-03,0,4,1.77112535292891670746e-01,0,0.0);
INSERT INTO "score" VALUES(2,12,67,2,3.40000003576278686523e-01,6.7758166276755543711e-02,0,6,1.5372913359260889643e-01,1,0.0);
INSERT INTO "score" VALUES(2,13,69,8,3.47499996423721313476e-01,6.6877028459466969501e-02,0,4,1.48728437744984232082e-01,1,0.0);
INSERT INTO "score" VALUES(2,14,82,4,4.14999991655349731445e-01,5.97090419868126706659e-02,0,1,1.7760287121607301608e-01,1,0.0);
INSERT INTO "score" VALUES(2,15,134,5,0.675000011920929,3.87857239559078262325e-02,0,4,1.31741971532852775172e-01,0,0.0);
INSERT INTO "score" VALUES(2,16,155,6,7.77499973773956298828e-01,0.031378356303833,0,7,1.54930341720429326501e-01,0,0.0);
INSERT INTO "score" VALUES(2,17,149,7,0.75,3.33955939996856548956e-02,0,1,1.76323353295100626603e-01,0,0.0);
INSERT INTO "score" VALUES(2,18,24,8,1.22500002384185791015e-01,1.11996268152609199098e-01,1,1,1.72300414923835160108e-01,1,0.0);
INSERT INTO "score" VALUES(2,19,172,9,0.862500011920929,2.46814265895788607918e-02,0,4,1.39967945052301728781e-01,0,0.0);
INSERT INTO "score" VALUES(2,20,80,0,4.02500003576278686523e-01,6.09467349704796573783e-02,0,1,1.38734984900040575483e-01,0,0.0);
INSERT INTO "score" VALUES(2,21,192,1,9.62499976158142089843e-01,1.37691758886152280927e-02,0,4,1.71278997526243259574e-01,0,0.0);
INSERT INTO "score" VALUES(2,22,91,2,4.5750001072883605957e-01,5.57402881378865622252e-02,0,4,1.4696740922928241968e-01,1,0.0);
INSERT INTO "score" VALUES(2,23,143,3,7.17499971389770507812e-01,3.57404830357178626698e-02,0,4,1.5546983034995473516e-01,1,0.0);
INSERT INTO "score" VALUES(2,24,86,4,0.4375,5.75652288736638734212e-02,0,1,1.86716558900747037208e-01,1,0.0);
INSERT INTO "score" VALUES(2,25,32,5,1.67500004172325134277e-01,9.7545589364751522643e-02,0,3,1.31875953861934042121e-01,1,0.0);
INSERT INTO "score" VALUES(2,26,167,6,8.37499976158142089843e-01,2.67584503737661252853e-02,0,4,1.47669629186705619883e-01,0,0.0);
INSERT INTO "score" VALUES(2,27,176,7,8.82499992847442626953e-01,2.29159620727199461742e-02,0,1,1.45972792713175758549e-01,0,0.0);
INSERT INTO "score" VALUES(2,28,122,8,0.612500011920929,4.33186894363879262948e-02,0,7,1.43147464700343896026e-01,1,0.0);
INSERT INTO "score" VALUES(2,29,87,9,0.4375,5.75652288736638734212e-02,0,4,1.50207605680502537248e-01,1,0.0);
INSERT INTO "score" VALUES(2,30,44,0,2.2499999403953552246e-01,8.47430902176958267268e-02,0,4,1.33167813093907794197e-01,1,0.0);
INSERT INTO "score" VALUES(2,31,169,9,8.5250002145767211914e-01,2.552708547902012709e-02,0,4,1.40848286732888544614e-01,0,0.0);
INSERT INTO "score" VALUES(2,32,26,3,1.35000005364418029785e-01,1.07399807454514953364e-01,1,8,1.37501837803684689998e-01,1,0.0);
INSERT INTO "score" VALUES(2,33,139,5,6.97499990463256835937e-01,3.71737612024610614147e-02,0,3,1.28821890110930425965e-01,0,0.0);
INSERT INTO "score" VALUES(2,34,161,6,8.07500004768371582031e-01,2.91173557858862043501e-02,0,4,1.54499785763923924708e-01,0,0.0);
INSERT INTO "score" VALUES(2,35,128,5,6.44999980926513671875e-01,4.09462942180688627136e-02,0,3,1.32779076851734956221e-01,0,0.0);
INSERT INTO "score" VALUES(2,36,107,0,5.37500023841857910156e-01,4.9029265215124614996e-02,0,7,1.23929538862177737734e-01,0,0.0);
INSERT INTO "score" VALUES(2,37,129,9,6.44999980926513671875e-01,4.09462942180688627136e-02,0,6,1.44306865453395438692e-01,1,0.0);
INSERT INTO "score" VALUES(2,38,66,8,3.3250001072883605957e-01,6.86597102986033075433e-02,0,4,1.2835979749077011669e-01,1,0.0);
INSERT INTO "score" VALUES(2,39,28,9,1.42499998211860656738e-01,1.04885859940375178456e-01,0,4,1.45397712350396529634e-01,1,0.0);
INSERT INTO "score" VALUES(2,40,76,8,3.87499988079071044921e-01,6.248100631255098375e-02,0,1,1.59826136562947779262e-01,1,0.0);
INSERT INTO "score" VALUES(2,41,83,4,4.14999991655349731445e-01,5.97090419868126706659e-02,0,1,1.69340059847238127987e-01,1,0.0);
INSERT INTO "score" VALUES(2,42,193,1,9.70000028610229492187e-01,1.25064411792282365043e-02,0,4,1.49140438555299598144e-01,0,0.0);
INSERT INTO "score" VALUES(2,43,145,7,7.2750002145767211914e-01,3.50219007950202179668e-02,0,1,1.59848229019356052882e-01,0,0.0);
INSERT INTO "score" VALUES(2,44,165,7,8.27499985694885253906e-01,2.75583771943463430587e-02,0,4,1.42936708460914191354e-01,0,0.0);
INSERT INTO "score" VALUES(2,45,41,3,2.07499995827674865722e-01,8.81868473512409795089e-02,0,4,1.59030063545117728018e-01,1,0.0);
INSERT INTO "score" VALUES(2,46,96,5,4.82499986886978149414e-01,5.35516142161745062333e-02,0,1,1.45582864699439928912e-01,1,0.0);
INSERT INTO "score" VALUES(2,47,173,1,8.67500007152557373046e-01,2.42500286936046735575e-02,0,4,1.60731014491995755077e-01,0,0.0);
INSERT INTO "score" VALUES(2,48,35,7,1.77499994635581970214e-01,9.49726358131600806311e-02,0,0,1.37028153430157451087e-01,1,0.0);
INSERT INTO "score" VALUES(2,49,77,0,3.87499988079071044921e-01,6.248100631255098375e-02,0,4,1.36099981738739439496e-01,0,0.0);
INSERT INTO "score" VALUES(2,50,7,2,3.75000014901161193847e-02,1.77730135387530796542e-01,1,7,1.46465082159897314051e-01,1,0.0);
INSERT INTO "score" VALUES(2,51,8,2,4.25000004470348358154e-02,1.69829880128019417018e-01,1,7,1.61844186544411905437e-01,1,0.0);
INSERT INTO "score" VALUES(2,52,179,7,8.97499978542327880859e-01,2.15097784389483674682e-02,0,1,1.40764912548690140914e-01,0,0.0);
INSERT INTO "score" VALUES(2,53,19,8,9.74999964237213134765e-02,1.23218096754458814046e-01,1,7,1.5771446375789219263e-01,1,0.0);
INSERT INTO "score" VALUES(2,54,9,0,4.7499999403953552246e-02,1.63011054994650128602e-01,1,7,1.6725010847904944744e-01,1,0.0);
INSERT INTO "score" VALUES(2,55,133,4,6.67500019073486328125e-01,3.93241403158069088852e-02,0,1,1.49869049007403221107e-01,1,0.0);
INSERT INTO "score" VALUES(2,56,197,1,0.987500011920929,9.22589441142807401008e-03,0,3,1.55938905533723304319e-01,0,0.0);
INSERT INTO "score" VALUES(2,57,12,2,0.0625,1.46973835651290241077e-01,1,1,1.86799873527408066831e-01,1,0.0);
INSERT INTO "score" VALUES(2,58,168,6,8.42499971389770507812e-01,2.63524909590815287208e-02,0,4,1.39488805271718280254e-01,0,0.0);
INSERT INTO "score" VALUES(2,59,94,3,4.7499999403953552246e-01,5.41982654355196505346e-02,0,1,1.541215960799212914e-01,1,0.0);
INSERT INTO "score" VALUES(2,60,85,3,4.27500009536743164062e-01,5.85054000686229050409e-02,0,4,1.60903275549995422588e-01,1,0.0);
INSERT INTO "score" VALUES(2,61,135,7,0.675000011920929,3.87857239559078262325e-02,0,1,1.70916624300183978002e-01,0,0.0);
INSERT INTO "score" VALUES(2,62,97,3,4.87500011920928955078e-01,5.31249522007574692672e-02,0,4,1.53242730954345041105e-01,1,0.0);
INSERT INTO "score" VALUES(2,63,120,3,6.0250002145767211914e-01,4.40583183460177343904e-02,0,4,1.50711780175470211329e-01,0,0.0);
INSERT INTO "score" VALUES(2,64,39,4,1.97500005364418029785e-01,0.0903116881231684,0,6,1.705873800752627234e-01,1,0.0);
INSERT INTO "score" VALUES(2,65,182,6,9.12500023841857910156e-01,2.00104407883818433133e-02,0,0,1.27854142032680390128e-01,0,0.0);
INSERT INTO "score" VALUES(2,66,153,6,7.6749998331069946289e-01,3.21167370711235578006e-02,0,4,1.36846703684816467516e-01,0,0.0);
INSERT INTO "score" VALUES(2,67,166,6,8.32499980926513671875e-01,2.71603204797029075534e-02,0,8,1.53559936141872827031e-01,0,0.0);
INSERT INTO "score" VALUES(2,68,89,4,4.49999988079071044921e-01,5.64163938495687924956e-02,0,1,1.7682688503907148525e-01,1,0.0);
INSERT INTO "score" VALUES(2,69,33,9,1.67500004172325134277e-01,9.7545589364751522643e-02,0,1,1.70300472840998307066e-01,1,0.0);
INSERT INTO "score" VALUES(2,70,199,1,9.97500002384185791015e-01,9.22589441142807401008e-03,0,4,1.50648745585706039795e-01,0,0.0);
INSERT INTO "score" VALUES(2,71,81,5,4.07499998807907104492e-01,6.04473925547229853916e-02,0,4,1.4056388220592794247e-01,1,0.0);
INSERT INTO "score" VALUES(2,72,45,0,2.2499999403953552246e-01,8.47430902176958267268e-02,0,4,1.50313449936042342613e-01,1,0.0);
INSERT INTO "score" VALUES(2,73,59,9,2.97500014305114746093e-01,7.31730033583834205135e-02,0,4,1.56048151328962270145e-01,1,0.0);
INSERT INTO "score" VALUES(2,74,54,5,2.72500008344650268554e-01,7.67654376107415603591e-02,0,1,1.30396128295337754288e-01,1,0.0);
INSERT INTO "score" VALUES(2,75,0,2,7.49999983236193656921e-03,2.4475432476817227112e-01,1,1,1.98155171405376390181e-01,1,0.0);
INSERT INTO "score" VALUES(2,76,18,8,0.0925000011920929,1.25895379885128166908e-01,1,1,1.8478783077671898094e-01,1,0.0);
INSERT INTO "score" VALUES(2,77,1,2,7.49999983236193656921e-03,2.4475432476817227112e-01,1,1,1.87543199529316390039e-01,1,0.0);
INSERT INTO "score" VALUES(2,78,146,0,7.32500016689300537109e-01,0.0346618083613759,0,4,1.4641393819986497915e-01,0,0.0);
INSERT INTO "score" VALUES(2,79,88,0,0.4375,5.75652288736638734212e-02,0,4,1.53253115277138196592e-01,0,0.0);
INSERT INTO "score" VALUES(2,80,191,1,9.57499980926513671875e-01,1.45368209196063274957e-02,0,4,1.56993572156116173443e-01,0,0.0);
INSERT INTO "score" VALUES(2,81,141,7,7.09999978542327880859e-01,3.62783746839759266289e-02,0,1,1.68317197496308412762e-01,1,0.0);
INSERT INTO "score" VALUES(2,82,190,6,9.52499985694885253906e-01,1.52581222851839032328e-02,0,4,1.38786103916029551763e-01,0,0.0);
INSERT INTO "score" VALUES(2,83,117,3,5.87499976158142089843e-01,4.51784102554038530241e-02,0,1,1.59048667780682523309e-01,1,0.0);
INSERT INTO "score" VALUES(2,84,36,2,1.82500004768371582031e-01,9.37506170330855287398e-02,0,6,1.69549402997210163501e-01,1,0.0);
INSERT INTO "score" VALUES(2,85,186,1,9.32500004768371582031e-01,1.78107523259798915249e-02,0,7,1.75719065352532122226e-01,0,0.0);
INSERT INTO "score" VALUES(2,86,157,7,7.87500023841857910156e-01,3.06331297944736589966e-02,0,4,1.4602277977245828322e-01,0,0.0);
INSERT INTO "score" VALUES(2,87,27,4,1.35000005364418029785e-01,1.07399807454514953364e-01,1,1,1.67701705980838861043e-01,1,0.0);
INSERT INTO "score" VALUES(2,88,180,6,9.02499973773956298828e-01,2.10216210666904664006e-02,0,4,1.39986769888909928782e-01,0,0.0);
INSERT INTO "score" VALUES(2,89,57,3,2.8749999403953552246e-01,0.0745685306056004,0,1,1.58624876915956891654e-01,1,0.0);
INSERT INTO "score" VALUES(2,90,184,1,9.22500014305114746093e-01,1.89444883194790948677e-02,0,7,1.6475051647200170124e-01,0,0.0);
INSERT INTO "score" VALUES(2,91,100,7,5.07499992847442626953e-01,5.14514409316194076815e-02,0,1,1.59234454738435809995e-01,1,0.0);
INSERT INTO "score" VALUES(2,92,71,9,3.57499986886978149414e-01,6.57320782680339693593e-02,0,4,1.48557778001591589411e-01,1,0.0);
INSERT INTO "score" VALUES(2,93,194,1,9.70000028610229492187e-01,1.25064411792282365043e-02,0,7,1.55171359010888437746e-01,0,0.0);
INSERT INTO "score" VALUES(2,94,132,7,6.62500023841857910156e-01,3.96836140285734412236e-02,0,1,1.61831956078516941976e-01,0,0.0);
INSERT INTO "score" VALUES(2,95,109,4,0.550000011920929,4.8047026849135580917e-02,0,6,1.83986835549375116194e-01,1,0.0);
INSERT INTO "score" VALUES(2,96,51,8,2.57499992847442626953e-01,7.91017456782665273617e-02,0,1,1.53808424191321291285e-01,1,0.0);
INSERT INTO "score" VALUES(2,97,50,4,2.52499997615814208984e-01,7.99148349176320160758e-02,0,1,1.78425537270293615987e-01,1,0.0);
INSERT INTO "score" VALUES(2,98,65,3,3.27499985694885253906e-01,6.92726448451303905562e-02,0,4,1.64155916911988858375e-01,0,0.0);
INSERT INTO "score" VALUES(2,99,170,1,8.5250002145767211914e-01,2.552708547902012709e-02,0,7,1.626466605575202784e-01,0,0.0);
INSERT INTO "score" VALUES(2,100,118,4,5.95000028610229492187e-01,4.4616667431358641993e-02,0,1,1.74314161347545931723e-01,1,0.0);
INSERT INTO "score" VALUES(2,101,93,0,4.67500001192092895507e-01,5.4853262544393592559e-02,0,4,1.38880889662834544617e-01,1,0.0);
INSERT INTO "score" VALUES(2,102,37,5,0.1875,9.25680125682807330989e-02,0,3,1.31683003620885474838e-01,1,0.0);
INSERT INTO "score" VALUES(2,103,23,3,1.17499999701976776123e-01,1.13999690028637870597e-01,1,7,1.69266074118479215027e-01,1,0.0);
INSERT INTO "score" VALUES(2,104,156,6,7.82500028610229492187e-01,3.10066664343473415155e-02,0,4,1.41203633431841030221e-01,0,0.0);
INSERT INTO "score" VALUES(2,105,30,2,1.52500003576278686523e-01,1.01774769071066903403e-01,0,9,1.59896428388018208011e-01,1,0.0);
INSERT INTO "score" VALUES(2,106,162,6,8.14999997615814208984e-01,2.85384779971954612165e-02,0,4,1.7239171323257895807e-01,0,0.0);
INSERT INTO "score" VALUES(2,107,183,1,9.17500019073486328125e-01,1.94850288994740938885e-02,0,4,1.72050031390577035095e-01,0,0.0);
INSERT INTO "score" VALUES(2,108,150,7,0.75,3.33955939996856548956e-02,0,1,1.77473110451110582808e-01,0,0.0);
INSERT INTO "score" VALUES(2,109,114,4,5.77499985694885253906e-01,4.5933108900931648999e-02,0,1,1.42439532440016114467e-01,1,0.0);
INSERT INTO "score" VALUES(2,110,126,4,6.32499992847442626953e-01,4.18538024426137952871e-02,0,6,1.37002651345522891146e-01,0,0.0);
INSERT INTO "score" VALUES(2,111,56,4,2.82499998807907104492e-01,7.52864347914391635052e-02,0,6,1.47059605075068461355e-01,1,0.0);
INSERT INTO "score" VALUES(2,112,142,7,7.09999978542327880859e-01,3.62783746839759266289e-02,0,1,1.51316526873812084996e-01,0,0.0);
INSERT INTO "score" VALUES(2,113,25,9,1.27499997615814208984e-01,1.10091277165535711413e-01,1,4,1.61629037870263170262e-01,1,0.0);
INSERT INTO "score" VALUES(2,114,10,8,5.4999999701976776123e-02,1.54306976051453798026e-01,1,1,1.93608710155814683906e-01,1,0.0);
INSERT INTO "score" VALUES(2,115,110,4,0.550000011920929,4.8047026849135580917e-02,0,7,1.72747841757051517896e-01,1,0.0);
INSERT INTO "score" VALUES(2,116,5,2,2.74999998509883880615e-02,1.98368925502490883738e-01,1,1,1.68223423929583060232e-01,1,0.0);
INSERT INTO "score" VALUES(2,117,108,5,5.42500019073486328125e-01,0.048634620556376,0,7,1.27485596240827420144e-01,0,0.0);
INSERT INTO "score" VALUES(2,118,177,7,0.887499988079071,2.2456136567131267101e-02,0,4,1.38114572420507564221e-01,0,0.0);
INSERT INTO "score" VALUES(2,119,113,9,5.67499995231628417968e-01,4.66949035635809139854e-02,0,4,1.48427738889726296145e-01,0,0.0);
INSERT INTO "score" VALUES(2,120,42,5,2.15000003576278686523e-01,8.6670846909943838332e-02,0,1,1.28247794161902739507e-01,1,0.0);
INSERT INTO "score" VALUES(2,121,14,3,7.24999979138374328613e-02,1.38749905492589559186e-01,1,1,1.75196082313417600406e-01,1,0.0);
INSERT INTO "score" VALUES(2,122,43,4,2.15000003576278686523e-01,8.6670846909943838332e-02,0,1,1.88304367626284746561e-01,1,0.0);
INSERT INTO "score" VALUES(2,123,47,8,2.3749999701976776123e-01,8.24687935801514532263e-02,0,4,1.57967396840203860852e-01,1,0.0);
INSERT INTO "score" VALUES(2,124,55,4,2.77500003576278686523e-01,0.0760185318656426,0,1,1.64120305396807608655e-01,1,0.0);
INSERT INTO "score" VALUES(2,125,124,9,6.22500002384185791015e-01,4.25840462670778047149e-02,0,1,1.29966314850180397755e-01,1,0.0);
INSERT INTO "score" VALUES(2,126,121,0,6.07500016689300537109e-01,4.3687843860318820166e-02,0,4,1.3702676477674266553e-01,0,0.0);
INSERT INTO "score" VALUES(2,127,95,8,4.7499999403953552246e-01,5.41982654355196505346e-02,0,1,1.57204603084541622015e-01,1,0.0);
INSERT INTO "score" VALUES(2,128,119,9,5.95000028610229492187e-01,4.4616667431358641993e-02,0,4,1.5575310867834887829e-01,1,0.0);
INSERT INTO "score" VALUES(2,129,15,8,7.75000005960464477539e-02,1.35153058383031376976e-01,1,1,1.71693276157019958372e-01,1,0.0);
INSERT INTO "score" VALUES(2,130,151,0,7.59999990463256835937e-01,0.0326666770326236,0,3,1.3384724430668334949e-01,0,0.0);
INSERT INTO "score" VALUES(2,131,185,1,9.27500009536743164062e-01,1.8387081094278334703e-02,0,4,1.67835430930429851947e-01,0,0.0);
INSERT INTO "score" VALUES(2,132,22,2,1.1249999701976776123e-01,1.16111369543625941869e-01,1,4,1.41998330989165116866e-01,1,0.0);
INSERT INTO "score" VALUES(2,133,106,1,5.32500028610229492187e-01,4.94263440582999938333e-02,0,7,1.49160168986696622939e-01,1,0.0);
INSERT INTO "score" VALUES(2,134,46,4,2.32500001788139343261e-01,8.33615197394508566919e-02,0,1,1.94663559521019630116e-01,1,0.0);
INSERT INTO "score" VALUES(2,135,78,5,3.87499988079071044921e-01,6.248100631255098375e-02,0,7,1.38474242651434570339e-01,0,0.0);
INSERT INTO "score" VALUES(2,136,158,6,7.92500019073486328125e-01,3.0257592297295209105e-02,0,8,1.39804152630298050841e-01,0,0.0);
INSERT INTO "score" VALUES(2,137,154,7,7.72499978542327880859e-01,3.17483330492022430835e-02,0,1,1.8419469898961587928e-01,0,0.0);
INSERT INTO "score" VALUES(2,138,61,8,0.3125,7.11726229697021151032e-02,0,1,1.72441145994515321326e-01,1,0.0);
INSERT INTO "score" VALUES(2,139,140,9,7.02499985694885253906e-01,3.68157070921814044694e-02,0,4,1.66021363165431673492e-01,1,0.0);
INSERT INTO "score" VALUES(2,140,79,6,3.87499988079071044921e-01,6.248100631255098375e-02,0,4,1.44868891302507463159e-01,1,0.0);
INSERT INTO "score" VALUES(2,141,198,1,9.92500007152557373046e-01,9.22589441142807401008e-03,0,4,1.71472526805880959299e-01,0,0.0);
INSERT INTO "score" VALUES(2,142,21,2,1.07500001788139343261e-01,1.18342598357537909237e-01,1,7,1.54167783023291066202e-01,1,0.0);
INSERT INTO "score" VALUES(2,143,90,3,4.49999988079071044921e-01,5.64163938495687924956e-02,0,4,1.5779013606167580086e-01,0,0.0);
INSERT INTO "score" VALUES(2,144,70,4,3.52499991655349731445e-01,0.0663004075489044,0,1,1.63842178533637167214e-01,1,0.0);
INSERT INTO "score" VALUES(2,145,62,5,0.3125,7.11726229697021151032e-02,0,4,1.35718596027623927824e-01,1,0.0);
INSERT INTO "score" VALUES(2,146,160,6,0.800000011920929,2.96901875722166107285e-02,0,4,1.36816147973776114366e-01,0,0.0);
INSERT INTO "score" VALUES(2,147,147,7,0.737500011920929,3.4301052112672425487e-02,0,1,1.86008673299267401901e-01,0,0.0);
INSERT INTO "score" VALUES(2,148,53,8,2.67500013113021850585e-01,0.0775278049925004,0,1,1.59119312351205743905e-01,1,0.0);
INSERT INTO "score" VALUES(2,149,136,9,6.82500004768371582031e-01,3.82480312790806353806e-02,0,4,1.48339539485033478083e-01,1,0.0);
INSERT INTO "score" VALUES(2,150,48,7,2.42500007152557373046e-01,0.0815974362125382,0,0,1.37517866294950302785e-01,1,0.0);
INSERT INTO "score" VALUES(2,151,2,5,7.49999983236193656921e-03,2.4475432476817227112e-01,1,1,2.12932701495966519855e-01,1,0.0);
INSERT INTO "score" VALUES(2,152,6,2,3.24999988079071044921e-02,1.87062578871796253432e-01,1,1,1.68878627895826666227e-01,1,0.0);
INSERT INTO "score" VALUES(2,153,103,3,5.1749998331069946289e-01,5.06330909391592906554e-02,0,1,1.52981296626118229431e-01,1,0.0);
INSERT INTO "score" VALUES(2,154,38,4,1.92499995231628417968e-01,9.14224328249996220918e-02,0,1,2.19038281889192720797e-01,1,0.0);
INSERT INTO "score" VALUES(2,155,138,5,6.92499995231628417968e-01,3.75317789284829797513e-02,0,4,1.43367704437021820096e-01,0,0.0);
INSERT INTO "score" VALUES(2,156,181,6,9.07500028610229492187e-01,2.05222092158087246471e-02,0,4,1.40186193893879623706e-01,0,0.0);
INSERT INTO "score" VALUES(2,157,130,7,6.54999971389770507812e-01,4.02238115298856196977e-02,0,4,1.61480598419454363101e-01,1,0.0);
INSERT INTO "score" VALUES(2,158,60,8,3.02500009536743164062e-01,0.072494315268374,0,1,1.54817322004448310046e-01,1,0.0);
INSERT INTO "score" VALUES(2,159,101,9,5.07499992847442626953e-01,5.14514409316194076815e-02,0,4,1.69227273568425928829e-01,1,0.0);
INSERT INTO "score" VALUES(2,160,92,0,4.62500005960464477539e-01,0.0552947662676306,0,4,1.4148158701723978492e-01,0,0.0);
INSERT INTO "score" VALUES(2,161,4,6,2.25000008940696716308e-02,2.12545382313942404772e-01,1,4,1.81623772264401212028e-01,1,0.0);
INSERT INTO "score" VALUES(2,162,72,5,3.65000009536743164062e-01,0.0648945043888185,0,7,1.26324821357762184792e-01,0,0.0);
INSERT INTO "score" VALUES(2,163,125,5,6.27499997615814208984e-01,4.22184109670727530927e-02,0,7,1.35994006164256442392e-01,0,0.0);
INSERT INTO "score" VALUES(2,164,171,6,8.5250002145767211914e-01,2.552708547902012709e-02,0,8,1.40381679727596464513e-01,0,0.0);
INSERT INTO "score" VALUES(2,165,123,5,6.17500007152557373046e-01,4.29507813688645087579e-02,0,4,1.29438261795698145162e-01,0,0.0);
INSERT INTO "score" VALUES(2,166,63,0,0.3125,7.11726229697021151032e-02,0,4,1.34753258163336081532e-01,0,0.0);
INSERT INTO "score" VALUES(2,167,131,9,6.54999971389770507812e-01,4.02238115298856196977e-02,0,4,1.55855530943522141429e-01,1,0.0);
INSERT INTO "score" VALUES(2,168,68,8,3.40000003576278686523e-01,6.7758166276755543711e-02,0,1,0.182471383720069,1,0.0);
INSERT INTO "score" VALUES(2,169,111,9,5.60000002384185791015e-01,4.72712852696231602966e-02,0,4,1.59696042808170457494e-01,1,0.0);
INSERT INTO "score" VALUES(2,170,31,8,1.57499998807907104492e-01,1.00310986644195507255e-01,0,1,1.79304221353185189169e-01,1,0.0);
INSERT INTO "score" VALUES(2,171,11,3,5.4999999701976776123e-02,1.54306976051453798026e-01,1,1,2.0329646202561801882e-01,1,0.0);
INSERT INTO "score" VALUES(2,172,188,1,9.39999997615814208984e-01,1.69052645785580657467e-02,0,4,1.72769483571062587579e-01,0,0.0);
INSERT INTO "score" VALUES(2,173,178,7,8.9249998331069946289e-01,2.19876633312598504521e-02,0,1,1.61925440901654477121e-01,0,0.0);
INSERT INTO "score" VALUES(2,174,175,7,8.77499997615814208984e-01,2.33678216012272663149e-02,0,1,1.66917834617790028506e-01,0,0.0);
INSERT INTO "score" VALUES(2,175,74,3,3.72500002384185791015e-01,0.064074032643536,0,4,1.53082522948999794065e-01,1,0.0);
INSERT INTO "score" VALUES(2,176,52,5,2.62499988079071044921e-01,7.83063318720386564164e-02,0,6,1.30554925914889985438e-01,0,0.0);
INSERT INTO "score" VALUES(2,177,189,1,9.47499990463256835937e-01,1.59408691815824017645e-02,0,4,1.66866299866977069177e-01,0,0.0);
INSERT INTO "score" VALUES(2,178,102,0,5.07499992847442626953e-01,5.14514409316194076815e-02,0,4,1.32784533113605718313e-01,0,0.0);
INSERT INTO "score" VALUES(2,179,29,0,1.47499993443489074707e-01,1.03298149973665279177e-01,0,1,1.47183781187534695744e-01,1,0.0);
INSERT INTO "score" VALUES(2,180,58,2,2.92499989271163940429e-01,7.38642379605971566292e-02,0,4,1.38092569038387957824e-01,1,0.0);
INSERT INTO "score" VALUES(2,181,16,2,8.25000032782554626464e-02,1.31835166100597339644e-01,1,4,1.63751581855880401494e-01,1,0.0);
INSERT INTO "score" VALUES(2,182,152,7,7.59999990463256835937e-01,0.0326666770326236,0,1,1.96716483001592334911e-01,1,0.0);
INSERT INTO "score" VALUES(2,183,40,3,2.02500000596046447753e-01,8.92337769014041465309e-02,0,1,1.48318404265718739587e-01,1,0.0);
INSERT INTO "score" VALUES(2,184,64,2,3.22499990463256835937e-01,6.9895516687857719984e-02,0,6,1.44291813489537346093e-01,1,0.0);
INSERT INTO "score" VALUES(2,185,115,6,5.77499985694885253906e-01,4.5933108900931648999e-02,0,4,1.50441165052135977786e-01,1,0.0);
INSERT INTO "score" VALUES(2,186,195,1,9.7750002145767211914e-01,1.10565866979254693452e-02,0,4,1.73079169394813547899e-01,0,0.0);
INSERT INTO "score" VALUES(2,187,20,2,1.02499999105930328369e-01,1.20706441999592670177e-01,1,4,1.44149906322813659009e-01,1,0.0);
INSERT INTO "score" VALUES(2,188,144,6,7.22500026226043701171e-01,3.53814262383919872489e-02,0,8,1.55832901589532085706e-01,0,0.0);
INSERT INTO "score" VALUES(2,189,84,3,4.22500014305114746093e-01,5.89829431365236148132e-02,0,4,1.57802109834887571704e-01,1,0.0);
INSERT INTO "score" VALUES(2,190,105,3,5.27499973773956298828e-01,4.98259509913994147467e-02,0,4,1.73199498442583255108e-01,1,0.0);
INSERT INTO "score" VALUES(2,191,99,7,4.97500002384185791015e-01,5.22817866120588309319e-02,0,4,0.164624641628171,1,0.0);
INSERT INTO "score" VALUES(2,192,116,3,5.77499985694885253906e-01,4.5933108900931648999e-02,0,4,1.56769150098853393693e-01,1,0.0);
INSERT INTO "score" VALUES(2,193,112,3,5.60000002384185791015e-01,4.72712852696231602966e-02,0,4,0.154756541112903,1,0.0);
INSERT INTO "score" VALUES(2,194,17,4,8.74999985098838806152e-02,1.28759364612379495484e-01,1,1,2.54164701788903713008e-01,1,0.0);
INSERT INTO "score" VALUES(2,195,174,6,8.72500002384185791015e-01,2.38123267257299119081e-02,0,4,1.3964502359814862098e-01,0,0.0);
INSERT INTO "score" VALUES(2,196,163,6,8.14999997615814208984e-01,2.85384779971954612165e-02,0,8,1.46735395781085437016e-01,0,0.0);
INSERT INTO "score" VALUES(2,197,164,6,8.22499990463256835937e-01,2.79528772168778881501e-02,0,8,1.41257260841499171499e-01,0,0.0);
INSERT INTO "score" VALUES(2,198,34,4,1.67500004172325134277e-01,9.7545589364751522643e-02,0,1,1.93215766179657855161e-01,1,0.0);
INSERT INTO "score" VALUES(2,199,73,9,3.65000009536743164062e-01,0.0648945043888185,0,4,1.44784826971658647787e-01,1,0.0);
CREATE TABLE verdict (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	draw_id INTEGER NOT NULL, 
	sample_id INTEGER NOT NULL, 
	label INTEGER, 
	decision VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(dataset_id) REFERENCES dataset (id), 
	FOREIGN KEY(draw_id) REFERENCES draw (id)
);
INSERT INTO "verdict" VALUES(1,1,1,56,1,'label','ada','2026-11-22 17:37:14.043933');
INSERT INTO "verdict" VALUES(2,1,1,169,9,'label','ada','2026-11-22 17:37:14.055949');
INSERT INTO "verdict" VALUES(3,1,1,104,6,'label','ada','2026-11-22 17:37:14.062543');
INSERT INTO "verdict" VALUES(4,1,1,162,5,'label','ada','2026-11-22 17:37:14.064741');
INSERT INTO "verdict" VALUES(5,1,1,142,2,'label','ada','2026-11-22 17:37:14.075838');
INSERT INTO "verdict" VALUES(6,1,1,46,NULL,'exclude','ada','2026-11-22 17:37:14.082922');
INSERT INTO "verdict" VALUES(7,1,1,21,1,'label','ada','2026-11-22 17:37:14.094092');
INSERT INTO "verdict" VALUES(8,1,1,11,1,'label','ada','2026-11-22 17:37:14.096872');
INSERT INTO "verdict" VALUES(9,1,1,66,6,'label','ada','2026-11-22 17:37:14.103518');
INSERT INTO "verdict" VALUES(10,1,1,122,NULL,'unsure','ada','2026-11-22 17:37:14.109975');
INSERT INTO "verdict" VALUES(11,1,1,20,0,'label','ada','2026-11-22 17:37:14.112275');
INSERT INTO "verdict" VALUES(12,1,1,5,5,'label','ada','2026-11-22 17:37:14.123219');
INSERT INTO "verdict" VALUES(13,1,1,131,1,'label','ada','2026-11-22 17:37:14.130727');
INSERT INTO "verdict" VALUES(14,1,1,70,1,'label','ada','2026-11-22 17:37:14.137705');
INSERT INTO "verdict" VALUES(15,1,1,3,3,'label','ada','2026-11-22 17:37:14.140219');
INSERT INTO "verdict" VALUES(16,1,1,31,9,'label','ada','2026-11-22 17:37:14.151319');
INSERT INTO "verdict" VALUES(17,1,1,180,2,'label','ada','2026-11-22 17:37:14.158159');
INSERT INTO "verdict" VALUES(18,1,1,198,4,'label','ada','2026-11-22 17:37:14.160738');
INSERT INTO "verdict" VALUES(19,1,1,41,4,'label','ada','2026-11-22 17:37:14.172562');
INSERT INTO "verdict" VALUES(20,1,1,141,1,'label','ada','2026-11-22 17:37:14.179741');
INSERT INTO "verdict" VALUES(21,1,1,36,0,'label','ada','2026-11-22 17:37:14.186727');
INSERT INTO "verdict" VALUES(22,1,1,159,9,'label','ada','2026-11-22 17:37:14.198261');
INSERT INTO "verdict" VALUES(23,1,1,136,6,'label','ada','2026-11-22 17:37:14.206076');
INSERT INTO "verdict" VALUES(24,1,1,186,1,'label','ada','2026-11-22 17:37:14.213476');
INSERT INTO "verdict" VALUES(25,1,1,90,1,'label','ada','2026-11-22 17:37:14.216803');
INSERT INTO "verdict" VALUES(26,1,1,183,8,'label','ada','2026-11-22 17:37:14.228357');
INSERT INTO "verdict" VALUES(27,1,1,127,8,'label','ada','2026-11-22 17:37:14.235323');
INSERT INTO "verdict" VALUES(28,1,1,47,1,'label','ada','2026-11-22 17:37:14.246516');
INSERT INTO "verdict" VALUES(29,1,1,39,9,'label','ada','2026-11-22 17:37:14.254173');
INSERT INTO "verdict" VALUES(30,1,1,86,7,'label','ada','2026-11-22 17:37:14.261188');
INSERT INTO "verdict" VALUES(31,1,1,75,2,'label','ada','2026-11-22 17:37:14.264132');
INSERT INTO "verdict" VALUES(32,1,1,64,4,'label','ada','2026-11-22 17:37:14.275679');
INSERT INTO "verdict" VALUES(33,1,1,37,9,'label','ada','2026-11-22 17:37:14.282021');
INSERT INTO "verdict" VALUES(34,1,1,132,2,'label','ada','2026-11-22 17:37:14.283504');
INSERT INTO "verdict" VALUES(35,1,1,184,2,'label','ada','2026-11-22 17:37:14.284782');
INSERT INTO "verdict" VALUES(36,1,1,140,0,'label','ada','2026-11-22 17:37:14.290370');
INSERT INTO "verdict" VALUES(37,1,1,17,7,'label','ada','2026-11-22 17:37:14.291669');
INSERT INTO "verdict" VALUES(38,1,1,51,2,'label','ada','2026-11-22 17:37:14.301170');
INSERT INTO "verdict" VALUES(39,1,1,193,3,'label','ada','2026-11-22 17:37:14.304066');
INSERT INTO "verdict" VALUES(40,1,1,191,7,'label','ada','2026-11-22 17:37:14.310608');
INSERT INTO "verdict" VALUES(41,1,1,107,1,'label','ada','2026-11-22 17:37:14.321645');
INSERT INTO "verdict" VALUES(42,1,1,63,3,'label','ada','2026-11-22 17:37:14.324406');
INSERT INTO "verdict" VALUES(43,1,1,4,4,'label','ada','2026-11-22 17:37:14.331643');
INSERT INTO "verdict" VALUES(44,1,1,182,7,'label','ada','2026-11-22 17:37:14.343292');
INSERT INTO "verdict" VALUES(45,1,1,195,6,'label','ada','2026-11-22 17:37:14.350478');
INSERT INTO "verdict" VALUES(46,1,1,23,3,'label','ada','2026-11-22 17:37:14.360996');
INSERT INTO "verdict" VALUES(47,1,1,72,0,'label','ada','2026-11-22 17:37:14.364279');
INSERT INTO "verdict" VALUES(48,1,1,139,9,'label','ada','2026-11-22 17:37:14.370924');
INSERT INTO "verdict" VALUES(49,1,1,92,9,'label','ada','2026-11-22 17:37:14.377717');
INSERT INTO "verdict" VALUES(50,1,1,89,3,'label','ada','2026-11-22 17:37:14.388948');
INSERT INTO "verdict" VALUES(51,1,1,78,0,'label','ada','2026-11-22 17:37:14.392205');
INSERT INTO "verdict" VALUES(52,1,1,13,3,'label','ada','2026-11-22 17:37:14.403497');
INSERT INTO "verdict" VALUES(53,1,1,181,2,'label','ada','2026-11-22 17:37:14.410777');
INSERT INTO "verdict" VALUES(54,1,1,134,4,'label','ada','2026-11-22 17:37:14.417904');
INSERT INTO "verdict" VALUES(55,1,1,67,6,'label','ada','2026-11-22 17:37:14.428989');
INSERT INTO "verdict" VALUES(56,1,1,88,6,'label','ada','2026-11-22 17:37:14.431249');
INSERT INTO "verdict" VALUES(57,1,1,104,7,'label','bob','2026-11-22 17:37:14.432759');
INSERT INTO "verdict" VALUES(58,1,1,162,NULL,'unsure','bob','2026-11-22 17:37:14.438498');
INSERT INTO "verdict" VALUES(59,1,1,162,NULL,'undo','bob','2026-11-22 17:37:14.440052');
INSERT INTO "verdict" VALUES(60,1,1,142,NULL,'undo','ada','2026-11-22 17:37:14.448940');
INSERT INTO "verdict" VALUES(61,1,1,142,2,'label','ada','2026-11-22 17:37:14.451740');
INSERT INTO "verdict" VALUES(62,1,1,101,NULL,'unsure','ada','2026-11-22 17:37:14.526105');
INSERT INTO "verdict" VALUES(63,1,1,170,8,'label','ada','2026-11-22 17:37:14.540476');
INSERT INTO "verdict" VALUES(64,1,1,54,4,'label','ada','2026-11-22 17:37:14.548039');
INSERT INTO "verdict" VALUES(65,1,1,54,NULL,'undo','ada','2026-11-22 17:37:14.559611');
INSERT INTO "verdict" VALUES(66,1,1,54,NULL,'exclude','ada','2026-11-22 17:37:14.567611');
INSERT INTO "verdict" VALUES(67,1,1,120,5,'label','ada','2026-11-22 17:37:14.579855');
INSERT INTO "verdict" VALUES(68,1,1,162,5,'label','ada','2026-11-22 17:37:14.588159');
INSERT INTO "verdict" VALUES(69,1,2,98,3,'label','bob','2026-11-22 17:37:14.614757');
INSERT INTO "verdict" VALUES(70,1,2,158,8,'label','bob','2026-11-22 17:37:14.626899');
INSERT INTO "verdict" VALUES(71,1,2,59,3,'label','bob','2026-11-22 17:37:14.631319');
INSERT INTO "verdict" VALUES(72,1,2,27,7,'label','bob','2026-11-22 17:37:14.638624');
INSERT INTO "verdict" VALUES(73,1,2,187,2,'label','bob','2026-11-22 17:37:14.651680');
CREATE UNIQUE INDEX ix_dataset_name ON dataset (name);
CREATE INDEX ix_sample_duplicate_group ON sample (duplicate_group);
CREATE INDEX sample_by_given_label ON sample (dataset_id, given_label);
CREATE INDEX ix_audit_dataset_id ON audit (dataset_id);
CREATE INDEX review_by_sample ON review (dataset_id, sample_id, id);
CREATE INDEX ix_review_batch ON review (batch);
CREATE INDEX ix_draw_dataset_id ON draw (dataset_id);
CREATE INDEX score_by_pair ON score (audit_id, given_label, suggested_label, rank, is_label_issue);
CREATE INDEX score_by_rank ON score (audit_id, rank, error_probability);
CREATE INDEX verdict_by_sample ON verdict (dataset_id, sample_id, id);
COMMIT;
